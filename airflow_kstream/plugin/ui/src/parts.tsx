import { Refused, type Answer } from "./api";
import { clock } from "./words";

export type Tone = "bad" | "warn" | "busy" | "good" | "calm";

// A shape beside the colour, so that neither is needed to tell them apart.
const MARKS: Record<Tone, React.ReactElement> = {
  bad: <path d="M8 1.5 15 14H1zM8 6v4M8 11.4v1.2" />,
  warn: <path d="M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13M8 4.4V8l2.4 1.8" />,
  busy: <path d="M13.6 9.6A5.8 5.8 0 1 1 13 5M13.6 1.8V5.4H10" />,
  good: <path d="M2.5 8.5 6.3 12.3 13.5 4" />,
  calm: <path d="M5.2 3v10M10.8 3v10" />,
};

export function Mark({ tone }: { tone: Tone }) {
  return (
    <svg className="ks-mark" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {MARKS[tone]}
    </svg>
  );
}

export function Badge({ tone, children, title }: { tone: Tone; children: React.ReactNode; title?: string }) {
  return (
    <span className={`ks-badge ks-${tone}`} title={title}>
      <Mark tone={tone} />
      {children}
    </span>
  );
}

/** Words with commands between backticks. */
export function Ticked({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}

export function Empty({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className="ks-note">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

const REFUSALS: Record<number, [string, string]> = {
  0: ["Airflow's API server does not answer", "Look whether it runs and whether your network reaches it."],
  401: ["You are not logged in", "Your session has ended: load this page again and log in."],
  403: [
    "You may not read this",
    "It takes the right to read assets, and each stream is shown to those who may read its DAG. Ask an admin of this Airflow for a role with both.",
  ],
};

interface Failed {
  error: Refused;
  at: number;
  retry: () => void;
  /** What a 404 means, if the page asks for something that may not be there: a title and more words. */
  missing?: [string, string];
}

export function Failure({ error, at, retry, missing }: Failed) {
  const plain = error.message === "no-json";
  const [title, advice] = plain
    ? [
        "This Airflow does not serve the pages' data",
        "Its API server runs without the plugin, or refused it: look for kstream in its log, and restart it after an upgrade.",
      ]
    : ((error.status === 404 && missing) || REFUSALS[error.status] || [
        `Airflow's API server failed (${error.status})`,
        "Its log has the cause. Streams are watched regardless.",
      ]);
  return (
    <div className="ks-note ks-bad" role="alert">
      <h2>
        <Mark tone="bad" /> {title}
      </h2>
      <p>{advice}</p>
      {at > 0 && <p>What you see below was read at {clock(at)}. It is asked again every 15 s.</p>}
      <button type="button" className="ks-button" onClick={retry}>
        Ask again now
      </button>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div className="ks-loading" role="status">
      <span className="ks-spinner" aria-hidden="true" /> Reading {what} …
    </div>
  );
}

interface PageProps<T> {
  title: string;
  lead: string;
  what: string;
  answer: Answer<T>;
  children: (data: T) => React.ReactNode;
}

/** A page of what an answer brought: its title, why there is no newer answer, and the content. */
export function AnswerPage<T>({ title, lead, what, answer, children }: PageProps<T>) {
  const { data, error } = answer;
  return (
    <>
      <header className="ks-head">
        <div>
          <h1>{title}</h1>
          <p className="ks-muted">{lead}</p>
        </div>
      </header>
      {error && <Failure error={error} at={answer.at} retry={answer.reload} />}
      {!data && !error && <Loading what={what} />}
      {data && children(data)}
    </>
  );
}
