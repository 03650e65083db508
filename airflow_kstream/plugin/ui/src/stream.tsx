import { ActionMenu } from "./actions";
import { page, taskPage, useAnswer, useNow } from "./api";
import { Batches, Lives, TokenStory } from "./drawings";
import { Badge, Failure, Loading, Mark, Ticked } from "./parts";
import { Findings, generationWords, HorizonWords } from "./row";
import { pulseWords, stateWords, TONES } from "./states";
import type { StreamStored, Submission, Told } from "./stored";
import { ago, duration, moment, sentence, since } from "./words";

const NONE: [string, string] = ["There is no such stream", "No stream of this name is stored or declared on this connection, or you may not read its DAG."];

/** All that is stored of one stream. */
export function StreamPage({ cluster, stream }: { cluster: string; stream: string }) {
  const query = new URLSearchParams({ cluster, stream });
  const answer = useAnswer<StreamStored>(`kstream/api/stream?${query}`);
  const now = useNow(answer.ahead);
  const { Link } = ReactRouterDOM;
  return (
    <>
      <p className="ks-back">
        <Link to={page()}>← All streams</Link>
      </p>
      {!answer.data && <h1>{stream}</h1>}
      {answer.error && <Failure error={answer.error} at={answer.at} retry={answer.reload} missing={NONE} />}
      {!answer.data && !answer.error && <Loading what={stream} />}
      {answer.data && <Stored stored={answer.data} now={now} reload={answer.reload} />}
    </>
  );
}

function Stored({ stored, now, reload }: { stored: StreamStored; now: number; reload: () => void }) {
  const { row, facts } = stored;
  const tone = TONES[row.urgency] ?? "calm";
  const [pulse, pulseTone] = pulseWords(row);
  return (
    <>
      <header className="ks-head">
        <div>
          <h1>{row.called}</h1>
          <div className="ks-state">
            <Badge tone={tone}>{stateWords(row)}</Badge>
            {row.pulse && pulse !== stateWords(row) && <Badge tone={pulseTone}>{pulse}</Badge>}
            <span className="ks-muted">
              {generationWords(row)} on {row.cluster}
              {row.seen && (
                <>
                  {" · last look "}
                  <span className={row.stale ? "ks-late" : undefined} title={moment(row.seen)}>
                    {ago(row.seen, now)}
                  </span>
                </>
              )}
            </span>
          </div>
          <p>
            <Ticked text={sentence(row.why)} />
          </p>
        </div>
        <div className="ks-tools">
          {row.watcher.state ? <a href={taskPage(row.watcher)}>Its task ({row.watcher.state})</a> : <span className="ks-late">Nobody watches it</span>}
          {stored.addresses.application && <Outside to={stored.addresses.application}>YARN application</Outside>}
          {stored.addresses.logs && <Outside to={stored.addresses.logs}>YARN logs</Outside>}
          <ActionMenu row={row} cluster={stored.cluster} done={reload} now={now} />
        </div>
      </header>
      {row.findings.length > 0 && <Findings row={row} now={now} />}
      {stored.freeze && (
        <div className="ks-note">
          <h2>The cluster is frozen</h2>
          <p>{stored.freeze}</p>
        </div>
      )}
      <div className="ks-panels">
        <Panel title="Until when" side={<HorizonWords row={row} now={now} />}>
          <TokenStory row={row} facts={facts} now={now} />
          {row.horizon.uncounted.length > 0 && (
            <p className="ks-muted">Not counted, because their ends are not known: {row.horizon.uncounted.join(", ")}.</p>
          )}
          {stored.foretold.map((words) => (
            <p key={words} className="ks-muted">
              Foretold: {words}.
            </p>
          ))}
          {stored.logs_seconds !== null && stored.logs_seconds > 0 && (
            <p className="ks-muted">
              The tokens of its launch end {duration(stored.logs_seconds)} after the last look: after that, the logs of an end are not aggregated.
            </p>
          )}
        </Panel>
        <Panel title="Progress" side={row.pulse && <small className="ks-muted">{row.pulse_why}</small>}>
          {facts?.progress.length ? (
            <>
              {facts.progress.map((each) => (
                <Batches key={each.path} progress={each} drawn={stored.drawn} now={now} />
              ))}
              {stored.drawn && <small className="ks-muted">as of the look {ago(stored.drawn, now)}</small>}
            </>
          ) : (
            <p className="ks-muted">Its declaration names no checkpoint, or nothing was looked at yet.</p>
          )}
        </Panel>
      </div>
      <Panel title="Generations">
        <Lives lives={stored.lives} now={now} />
      </Panel>
      {stored.done.length > 0 && (
        <Panel title="What its task did last">
          <ol className="ks-done">
            {stored.done.map((step) => (
              <li key={step.at + step.what}>
                <span className="ks-muted" title={moment(step.at)}>
                  {ago(step.at, now)}
                </span>{" "}
                <b>{step.what}</b>
                {step.why && <span className="ks-why">{sentence(step.why)}</span>}
              </li>
            ))}
          </ol>
        </Panel>
      )}
      <Evidence stored={stored} />
      <Panel title="Events">
        <Events events={stored.events} now={now} />
      </Panel>
      <Differences stored={stored} />
      {stored.submission && <Words submission={stored.submission} />}
      {stored.cut && <p className="ks-muted">Some texts were too long to be stored whole; they end with “…”.</p>}
    </>
  );
}

function Panel({ title, side, children }: { title: string; side?: React.ReactNode; children: React.ReactNode }) {
  return (
    <section className="ks-panel" aria-label={title}>
      <div className="ks-panel-head">
        <h2>{title}</h2>
        {side && <div className="ks-side">{side}</div>}
      </div>
      {children}
    </section>
  );
}

/** A link to the cluster's own pages. Its address is another program's: only one that a browser may open safely. */
function Outside({ to, children }: { to: string; children: React.ReactNode }) {
  if (!/^https?:\/\//.test(to)) return null;
  return (
    <a href={to} target="_blank" rel="noreferrer noopener">
      {children} ↗
    </a>
  );
}

function Evidence({ stored }: { stored: StreamStored }) {
  const { evidence, blocked, diagnostics, failure } = stored;
  const texts: [string, string][] = [
    ["What stands in the way", blocked ? `${blocked.by}: ${blocked.why}` : ""],
    ["What its driver reported", failure],
    ["What YARN says of its end", diagnostics],
  ];
  const some = texts.filter(([, text]) => text);
  if (!some.length && !evidence) return null;
  return (
    <Panel title="Evidence">
      {some.map(([name, text]) => (
        <React.Fragment key={name}>
          <h3>{name}</h3>
          <pre tabIndex={0}>{text}</pre>
        </React.Fragment>
      ))}
      {evidence && (
        <p>
          <Ticked text={evidence} />
        </p>
      )}
    </Panel>
  );
}

function Events({ events, now }: { events: Told[]; now: number }) {
  if (!events.length) return <p className="ks-muted">Nobody had to be told of anything since its rows were stored.</p>;
  return (
    <ul className="ks-events">
      {events.toReversed().map((event) => (
        <li key={event.kind + event.since}>
          <Mark tone={event.until ? "good" : "bad"} />
          <div>
            <b>{sentence(event.words)}</b>{" "}
            <span className="ks-muted" title={`${moment(event.since)}${event.until ? ` to ${moment(event.until)}` : ""}`}>
              {event.until
                ? `ended ${ago(event.until, now)}, after ${duration((Date.parse(event.until) - Date.parse(event.since)) / 1000)}`
                : `${since(event.since, now)}, and it still lasts`}
            </span>
            {event.why && <span className="ks-why">{sentence(event.why)}</span>}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Differences({ stored }: { stored: StreamStored }) {
  if (!stored.differences.length && !stored.doubts.length) return null;
  return (
    <Panel title="Declared and running differ">
      {stored.differences.length > 0 && (
        <p>
          Its declaration was edited: {stored.differences.map((name, index) => (
            <React.Fragment key={name}>
              {index > 0 && ", "}
              <code>{name}</code>
            </React.Fragment>
          ))}{" "}
          take effect with the next generation. Restart it to have them now.
        </p>
      )}
      {stored.doubts.map((words) => (
        <p key={words}>{sentence(words)}</p>
      ))}
    </Panel>
  );
}

function Words({ submission }: { submission: Submission }) {
  const [find, setFind] = React.useState("");
  const parts = submission.parts.filter((part) => `${part.text} ${part.source} ${part.why}`.toLowerCase().includes(find.toLowerCase()));
  return (
    <Panel
      title="The next submission, word by word"
      side={
        <label className="ks-search">
          <span className="ks-hidden">Find a word</span>
          <input type="search" placeholder="Find a word" value={find} onChange={(event) => setFind(event.target.value)} />
        </label>
      }
    >
      {submission.notes.map((note) => (
        <p key={note} className="ks-muted">
          {sentence(note)}
        </p>
      ))}
      <div className="ks-scroll" tabIndex={0}>
        <table className="ks-plain ks-words">
          <thead>
            <tr>
              <th scope="col">Word</th>
              <th scope="col">From</th>
              <th scope="col">Because</th>
            </tr>
          </thead>
          <tbody>
            {submission.binary && !find && (
              <tr>
                <td>
                  <code>{submission.binary}</code>
                </td>
                <td />
                <td />
              </tr>
            )}
            {parts.map((part, index) => (
              <tr key={index}>
                <td>
                  <code>{part.text}</code>
                </td>
                <td>{part.source}</td>
                <td className="ks-muted">{part.why}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
