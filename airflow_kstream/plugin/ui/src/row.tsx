import { ActionMenu } from "./actions";
import { page, taskPage, url } from "./api";
import { barWords, HorizonBar, Sparkline } from "./charts";
import { Badge, Ticked } from "./parts";
import { pulseWords, stateWords, TONES } from "./states";
import type { Cluster, Row } from "./stored";
import { ago, away, moment, sentence, since } from "./words";

interface OneRow {
  row: Row;
  cluster?: Cluster;
  now: number;
  several: boolean;
  reload: () => void;
}

/** One stream in the fleet's table, with what is wrong with it below. */
export function StreamRow({ row, cluster, now, several, reload }: OneRow) {
  const { Link } = ReactRouterDOM;
  const tone = TONES[row.urgency] ?? "calm";
  return (
    <>
    <tr className={`ks-row ks-edge-${tone}${row.findings.length ? " ks-more" : ""}`} data-stream={row.stream}>
      <td data-label="Stream">
        <Link className="ks-name" to={page({ cluster: row.cluster, stream: row.stream })}>
          {row.called}
        </Link>
        <div className="ks-state">
          <Badge tone={tone} title={row.urgency}>
            {stateWords(row)}
          </Badge>
          <span className="ks-muted">
            {generationWords(row)}
            {several && ` · ${row.cluster}`}
          </span>
        </div>
        {!row.findings.length && !quiet(row) && row.why && (
          <p className="ks-why">
            <Ticked text={sentence(row.why)} />
          </p>
        )}
      </td>
      <td data-label="Credentials">
        <HorizonBar horizon={row.horizon} now={now} />
        <HorizonWords row={row} now={now} />
      </td>
      <td data-label="Progress">
        <Pulse row={row} now={now} />
      </td>
      <td data-label="Last restart">
        {row.began.at ? (
          <>
            <span title={moment(row.began.at)}>{ago(row.began.at, now)}</span>
            <small className="ks-muted ks-clip" title={row.began.why}>
              {row.generation === 1 ? "first start" : row.began.why}
            </small>
          </>
        ) : (
          <span className="ks-muted">not known</span>
        )}
      </td>
      <td data-label="Wanted">
        <DesiredWords row={row} now={now} />
      </td>
      <td data-label="Watched by">
        <WatchedBy row={row} />
      </td>
      <td className="ks-actions">
        <ActionMenu row={row} cluster={cluster} done={reload} now={now} />
      </td>
    </tr>
    {row.findings.length > 0 && (
      <tr className={`ks-row ks-edge-${tone}`} data-findings-of={row.stream}>
        <td colSpan={7}>
          <Findings row={row} now={now} />
        </td>
      </tr>
    )}
    </>
  );
}

export const generationWords = ({ generation, seen }: Row) => (generation ? `generation ${generation}` : seen ? "never submitted" : "not looked at yet");

const quiet = (row: Row) => row.urgency === "well" || row.state === "running";

export function Findings({ row, now }: { row: Row; now: number }) {
  return (
    <ul className={`ks-findings${row.findings.every((finding) => finding.waits) ? " ks-waits" : ""}`}>
      {row.findings.map((finding) => (
        <li key={finding.kind + finding.words}>
          <strong>
            {sentence(finding.words)}
            {finding.since && "."}
          </strong>
          {finding.since && <span className="ks-muted"> {sentence(since(finding.since, now))}.</span>}
          {finding.why && <span className="ks-why">{sentence(finding.why)}</span>}
          {finding.way_out && (
            <span className="ks-out">
              <b>What now:</b> <Ticked text={finding.way_out} />
              {finding.runbook && (
                <>
                  {" "}
                  <a href={finding.runbook} target="_blank" rel="noreferrer">
                    Runbook
                  </a>
                </>
              )}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

export function HorizonWords({ row, now }: { row: Row; now: number }) {
  const { horizon, pushes } = row;
  const mode = horizon.credentials && <span className="ks-muted">{horizon.credentials}</span>;
  if (horizon.renews_itself) {
    return (
      <small>
        no end: it renews itself {mode && "· "}
        {mode}
        {horizon.warning && <span className="ks-muted"> · {horizon.warning}</span>}
      </small>
    );
  }
  if (!horizon.hard) return <small className="ks-muted">{horizon.runs ? "its end is not known" : "nothing runs"}</small>;
  const past = now >= Date.parse(horizon.hard);
  return (
    <small title={barWords(horizon, now)}>
      <b className={past ? "ks-late" : undefined}>{past ? `ended ${away(horizon.hard, now)}` : `ends ${away(horizon.hard, now)}`}</b>
      {horizon.held && <span className="ks-late"> · {horizon.held}</span>}
      {horizon.warning && <span className="ks-muted"> · {horizon.warning}</span>}
      {horizon.plan && !past && <span className="ks-muted"> · restart {Date.parse(horizon.plan) > now ? away(horizon.plan, now) : "due"}</span>}
      <span className="ks-muted ks-clip" title={horizon.reason}>
        {horizon.reason}
      </span>
      {pushes && <span className={pushes.trouble ? "ks-late" : "ks-muted"}>{pushWords(row, now)}</span>}
    </small>
  );
}

function pushWords({ horizon, pushes }: Row, now: number): string {
  if (pushes!.trouble) return `pushes: ${pushes!.trouble}`;
  const last = pushes!.confirmed ? `fresh tokens pushed ${ago(pushes!.confirmed, now)}` : "no fresh tokens pushed yet";
  return horizon.push ? `${last}, the next ${Date.parse(horizon.push) > now ? away(horizon.push, now) : "are due"}` : last;
}

function Pulse({ row, now }: { row: Row; now: number }) {
  if (!row.pulse) return <span className="ks-muted">not watched</span>;
  const [words, tone] = pulseWords(row);
  // What a finding says is not said twice.
  const late = ["warn", "bad"].includes(tone) && !row.findings.some((finding) => finding.why.includes(row.pulse_why));
  return (
    <>
      <span className="ks-pulse" title={row.pulse_why}>
        <Badge tone={tone}>{words}</Badge>
      </span>
      {late && <span className="ks-why">{sentence(row.pulse_why)}</span>}
      <Sparkline seconds={row.batches} limit={row.stall_after} />
      <small className="ks-muted" title={row.committed ? moment(row.committed) : ""}>
        {row.committed ? `last commit ${ago(row.committed, now)}` : "no commit yet"}
      </small>
    </>
  );
}

function DesiredWords({ row, now }: { row: Row; now: number }) {
  const { state, by, at, reason } = row.desired;
  if (!state) return <span className="ks-muted">not known</span>;
  return (
    <>
      {state}
      {by && (
        <small className="ks-muted ks-clip" title={`${by}${at ? `, ${moment(at)}` : ""}${reason ? `: ${reason}` : ""}`}>
          {by}
          {at && `, ${ago(at, now)}`}
          {reason && `: ${reason}`}
        </small>
      )}
    </>
  );
}

export function WatchedBy({ row }: { row: Row }) {
  const { watcher } = row;
  if (!watcher.state) {
    return (
      <>
        <Badge tone={row.findings.length ? "bad" : "calm"}>nobody</Badge>
        {watcher.dag && (
          <small>
            <DagLink to={url(`dags/${encodeURIComponent(watcher.dag)}`)} dag={watcher.dag} />
          </small>
        )}
      </>
    );
  }
  return (
    <>
      <DagLink to={taskPage(watcher)} dag={watcher.dag} />
      <small className="ks-muted">
        {watcher.task}, {watcher.state}
        {watcher.paused && ", DAG paused"}
      </small>
    </>
  );
}

/** A link with a DAG's id, which breaks between its parts. */
function DagLink({ to, dag }: { to: string; dag: string }) {
  return (
    <a href={to} className="ks-path">
      {dag.split(/(?<=[.-])/).map((part, index) => (
        <React.Fragment key={index}>
          {part}
          <wbr />
        </React.Fragment>
      ))}
    </a>
  );
}
