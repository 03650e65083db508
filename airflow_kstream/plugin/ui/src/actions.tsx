import { readRun, runPage, startRun, type Refused, type Run } from "./api";
import { Badge, Ticked } from "./parts";
import { stateWords } from "./states";
import type { Cluster, Row, Word } from "./stored";
import { ago, duration } from "./words";

const ACTIONS: Record<Word, { title: string; destroys: boolean }> = {
  hold: { title: "Hold", destroys: false },
  start: { title: "Start", destroys: false },
  restart: { title: "Restart", destroys: true },
  stop: { title: "Stop", destroys: true },
};

/** What may be done with a stream, as a menu. It is made when it is opened: a fleet has hundreds. */
export function ActionMenu({ row, cluster, done, now }: { row: Row; cluster?: Cluster; done: () => void; now: number }) {
  const [open, setOpen] = React.useState(false);
  const [word, choose] = React.useState<Word | null>(null);
  const button = React.useRef<HTMLButtonElement>(null);
  const form = cluster?.form;
  if (!form || !Object.keys(row.actions).length) return null;
  return (
    <>
      <button
        ref={button}
        type="button"
        className="ks-button ks-menu-button"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={`Actions for ${row.called}`}
        title={form.may ? "Actions" : "You may not start runs of its control DAG"}
        disabled={!form.may}
        onClick={() => setOpen(true)}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true" className="ks-dots">
          <circle cx="8" cy="3" r="1.4" />
          <circle cx="8" cy="8" r="1.4" />
          <circle cx="8" cy="13" r="1.4" />
        </svg>
      </button>
      {open && <Menu row={row} below={button.current!} close={() => setOpen(false)} choose={choose} />}
      {word && (
        <ActionDialog
          word={word}
          row={row}
          dag={form.dag}
          now={now}
          close={(changed) => {
            choose(null);
            button.current?.focus();
            if (changed) done();
          }}
        />
      )}
    </>
  );
}

function Menu({ row, below, close, choose }: { row: Row; below: HTMLElement; close: () => void; choose: (word: Word) => void }) {
  const menu = React.useRef<HTMLDivElement>(null);
  const at = below.getBoundingClientRect();
  const place = { top: Math.min(at.bottom + 4, innerHeight - 190), left: Math.max(8, at.right - 170) };
  React.useEffect(() => {
    menu.current!.showPopover();
    menu.current!.querySelector("button")!.focus();
  }, []);
  const step = (event: React.KeyboardEvent) => {
    const items = [...menu.current!.querySelectorAll("button")];
    const here = items.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length]!.focus();
  };
  return (
    <div
      ref={menu}
      popover="auto"
      role="menu"
      aria-label={`Actions for ${row.called}`}
      className="ks-menu"
      style={place}
      onKeyDown={step}
      onToggle={(event) => event.newState === "closed" && close()}
    >
      {(Object.keys(row.actions) as Word[]).map((each) => (
        <button
          key={each}
          type="button"
          role="menuitem"
          className={ACTIONS[each].destroys ? "ks-destroys" : undefined}
          onClick={() => {
            menu.current!.hidePopover();
            choose(each);
          }}
        >
          {ACTIONS[each].title} …
        </button>
      ))}
    </div>
  );
}

function ActionDialog({
  word,
  row,
  dag,
  now,
  close,
}: {
  word: Word;
  row: Row;
  dag: string;
  now: number;
  close: (changed: boolean) => void;
}) {
  const action = ACTIONS[word];
  const [reason, setReason] = React.useState("");
  // Of the moment at which the dialog was opened: what is said below changes the row.
  const [said] = React.useState(row.actions[word]);
  const [before] = React.useState(row.desired.at);
  const shown = row.desired.at !== before && row.desired.reason === reason.trim();
  const conf = () => ({ action: word, stream: row.stream, reason: reason.trim() });
  const name = `${action.title} ${row.called}`;
  return (
    <RunDialog
      title={`${name}?`}
      sentTitle={name}
      button={name}
      dag={dag}
      conf={conf}
      lacks={reason.trim().length < 3 ? "It needs a reason of three characters or more." : ""}
      destroys={action.destroys}
      close={close}
      done={shown ? "done: the page shows it" : "done: the next look shows it"}
      head={<>
        <p>{said}</p>
        <p className="ks-muted">
          As of the last look{row.seen && `, ${ago(row.seen, now)}`}: {stateWords(row)}
          {row.generation > 0 && `, generation ${row.generation}`}
          {row.why && (
            <>
              {" – "}
              <Ticked text={row.why} />
            </>
          )}
          {row.stale && row.seen && ` That look is more than ${duration((now - Date.parse(row.seen)) / 1000)} old: it may have changed.`}
        </p>
      </>}
    >
      <label className="ks-field">
        Reason
        <textarea
          required
          minLength={3}
          maxLength={300}
          rows={2}
          value={reason}
          autoFocus
          onChange={(event) => setReason(event.target.value)}
          placeholder="The next person will ask why"
        />
        <small>It is shown beside your name, also in what its task does because of it.</small>
      </label>
    </RunDialog>
  );
}

type Sent = { run: Run } | { refusal: string } | null;

interface RunDialogProps {
  title: string;
  /** The title once the run is started, when nothing is asked any longer. */
  sentTitle: string;
  button: string;
  dag: string;
  conf: () => Record<string, unknown>;
  /** What is missing before it can be sent, in words; empty if nothing is. */
  lacks: string;
  destroys: boolean;
  close: (changed: boolean) => void;
  /** What is said after the run succeeded. */
  done: string;
  head: React.ReactNode;
  children: React.ReactNode;
}

/** Asks before it starts a run of a DAG as the reader, and then follows the run. */
export function RunDialog({ title, sentTitle, button, dag, conf, lacks, destroys, close, done, head, children }: RunDialogProps) {
  const [busy, setBusy] = React.useState(false);
  const [sent, setSent] = React.useState<Sent>(null);
  const dialog = React.useRef<HTMLDialogElement>(null);
  const id = React.useId();
  React.useEffect(() => dialog.current?.showModal(), []);
  const run = sent && "run" in sent ? sent.run : null;
  const running = run !== null && !["success", "failed"].includes(run.state);
  React.useEffect(() => {
    if (!running) return;
    const look = () => readRun(dag, run!.dag_run_id).then((newer) => setSent({ run: newer }), () => undefined);
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, [running]);
  const send = (event: React.FormEvent) => {
    event.preventDefault();
    setBusy(true);
    startRun(dag, conf())
      .then(
        (run) => setSent({ run }),
        (error: Refused) => setSent({ refusal: refusal(error, dag) }),
      )
      .finally(() => setBusy(false));
  };
  return (
    <dialog ref={dialog} className="ks-dialog" aria-labelledby={id} onClose={() => close(run !== null)}>
      <form onSubmit={send}>
        <h2 id={id}>{run ? sentTitle : title}</h2>
        {head}
        {!run && children}
        {sent && "refusal" in sent && (
          <p className="ks-refusal" role="alert">
            {sent.refusal}
          </p>
        )}
        {run && (
          <p role="status" className="ks-run">
            <Badge tone={run.state === "failed" ? "bad" : run.state === "success" ? "good" : "busy"}>{run.state === "success" ? done : (RUN[run.state] ?? run.state)}</Badge>{" "}
            <a href={runPage(dag, run.dag_run_id)}>The run of {dag}</a>
          </p>
        )}
        {!run && lacks && <p className="ks-muted ks-lacks">{lacks}</p>}
        <div className="ks-buttons">
          <button type="button" className="ks-button" onClick={() => dialog.current?.close()}>
            {run ? "Close" : "Cancel"}
          </button>
          {!run && (
            <button type="submit" className={`ks-button ${destroys ? "ks-danger" : "ks-primary"}`} disabled={busy || lacks !== ""}>
              {busy ? "Sending …" : button}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}

const RUN: Record<string, string> = {
  queued: "waiting for a worker",
  running: "under way",
  failed: "failed: its log says why",
};

function refusal(error: Refused, dag: string): string {
  if (error.status === 403) return `You may not start runs of ${dag}.`;
  if (error.status === 400) return `Airflow refused the form: ${error.message}. What it names may not be declared in this folder.`;
  return error.message;
}
