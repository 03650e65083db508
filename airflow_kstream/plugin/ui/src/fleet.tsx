import { ActionMenu } from "./actions";
import { page, taskPage, useAnswer, useNow, type Cluster, type Fleet, type Row } from "./api";
import { barWords, HorizonBar, Sparkline } from "./charts";
import { Badge, Empty, Failure, Loading, Mark } from "./parts";
import { pulseWords, stateWords, TONES, URGENCIES } from "./states";
import { away, clock, count, duration, moment, sentence } from "./words";

// So many rows are not drawn again each second.
const MANY = 40;

/** All streams that the reader may see, the most urgent first. */
export function FleetPage() {
  const answer = useAnswer<Fleet>("kstream/api/fleet");
  const { data, error } = answer;
  const now = useNow(answer.ahead, data && data.streams.length > MANY ? 10_000 : 1000);
  return (
    <>
      {error && <Failure error={error} at={answer.at} retry={answer.reload} />}
      {!data && !error && <Loading what="the fleet" />}
      {data && data.streams.length === 0 && <NoStreams />}
      {data && data.streams.length > 0 && <Streams fleet={data} now={now} at={answer.at} reload={answer.reload} />}
    </>
  );
}

function NoStreams() {
  return (
    <Empty title="No stream is stored yet that you may see">
      <p>A stream appears here after the first look at it. For that</p>
      <ol>
        <li>
          declare it: a file <code>&lt;connection id&gt;/&lt;stream&gt;.yaml</code> in the folder that <code>[kstream] streams_folder</code> names;
        </li>
        <li>unpause its DAG, or run a DAG of your own with a SparkStreamOperator;</li>
        <li>see that a triggerer runs: it looks at the stream and stores what it saw.</li>
      </ol>
      <p>
        You see the streams whose DAG you may read. <code>kstream streams status</code> asks the cluster itself.
      </p>
    </Empty>
  );
}

function Streams({ fleet, now, at, reload }: { fleet: Fleet; now: number; at: number; reload: () => void }) {
  const [query, setQuery] = ReactRouterDOM.useSearchParams();
  const show = query.get("show") ?? "";
  const [name, setName] = React.useState("");
  const clusters = new Map(fleet.clusters.map((each) => [each.id, each]));
  const several = clusters.size > 1;
  const rows = fleet.streams.filter(
    (row) => (!show || row.urgency === show) && (!name || `${row.cluster}/${row.stream}`.toLowerCase().includes(name.toLowerCase())),
  );
  const newest = Math.max(...fleet.streams.map((row) => Date.parse(row.seen)));
  const late = now - newest > fleet.stale_after * 1000;
  return (
    <>
      <header className="ks-head">
        <div>
          <h1>Streams</h1>
          <p className="ks-muted">
            {count(fleet.streams.length, "stream")}
            {several && ` on ${count(clusters.size, "cluster")}`} ·{" "}
            <span className={late ? "ks-late" : undefined} title={moment(newest)}>
              last look {away(new Date(newest).toISOString(), now)}
            </span>{" "}
            · read at {clock(at)}
          </p>
        </div>
        <label className="ks-search">
          <span className="ks-hidden">Find a stream</span>
          <input type="search" placeholder="Find a stream" value={name} onChange={(event) => setName(event.target.value)} />
        </label>
      </header>
      {late && (
        <div className="ks-note ks-bad" role="alert">
          <h2>
            <Mark tone="bad" /> Nobody has looked for {duration((now - newest) / 1000)}
          </h2>
          <p>
            What you see is old. Look whether a triggerer runs (Admin → its health is on Airflow's first page), then at the log of a watching task.
          </p>
        </div>
      )}
      <nav className="ks-strip" aria-label="Show only">
        {URGENCIES.map(([urgency, tone]) => {
          const many = fleet.streams.filter((row) => row.urgency === urgency).length;
          return (
            <button
              key={urgency}
              type="button"
              className={`ks-tile ks-${many ? tone : "none"}`}
              aria-pressed={show === urgency}
              onClick={() => setQuery(show === urgency ? {} : { show: urgency })}
            >
              <span className="ks-number">{many}</span>
              <span className="ks-label">
                <Mark tone={tone} /> {urgency}
              </span>
            </button>
          );
        })}
      </nav>
      {fleet.clusters.map((cluster) => (
        <ClusterTold key={cluster.id} cluster={cluster} now={now} />
      ))}
      {rows.length === 0 ? (
        <Empty title="No stream matches">
          <button
            type="button"
            className="ks-button"
            onClick={() => {
              setName("");
              setQuery({});
            }}
          >
            Show all of them
          </button>
        </Empty>
      ) : (
        <table className="ks-table">
          <thead>
            <tr>
              <th scope="col">Stream</th>
              <th scope="col">Credentials</th>
              <th scope="col">Progress</th>
              <th scope="col">Last restart</th>
              <th scope="col">Wanted</th>
              <th scope="col">Watched by</th>
              <th scope="col">
                <span className="ks-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <StreamRow key={`${row.cluster}/${row.stream}`} row={row} cluster={clusters.get(row.cluster)} now={now} several={several} reload={reload} />
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

const OF_CLUSTERS: Record<string, string> = {
  cluster_unreachable: "is unreachable, so none of its streams is seen",
  environment: "ends streams without a fault of theirs",
};

function ClusterTold({ cluster, now }: { cluster: Cluster; now: number }) {
  return (
    <>
      {cluster.told
        .filter((event) => OF_CLUSTERS[event.kind])
        .map((event) => (
          <div key={event.kind + event.about} className="ks-note ks-bad" role="alert">
            <h2>
              <Mark tone="bad" /> {cluster.id} {OF_CLUSTERS[event.kind]}
              {event.about && ` (${event.about})`}
            </h2>
            <p>
              {event.why} <span className="ks-muted">Since {away(event.since, now).replace(" ago", "")}.</span>
            </p>
          </div>
        ))}
    </>
  );
}

interface OneRow {
  row: Row;
  cluster?: Cluster;
  now: number;
  several: boolean;
  reload: () => void;
}

function StreamRow({ row, cluster, now, several, reload }: OneRow) {
  const { Link } = ReactRouterDOM;
  const tone = TONES[row.urgency] ?? "calm";
  return (
    <>
    <tr className={`ks-row ks-edge-${tone}${row.findings.length ? " ks-more" : ""}`} data-stream={row.stream}>
      <td data-label="Stream">
        <Link className="ks-name" to={page({ cluster: row.cluster, stream: row.stream })}>
          {row.stream}
        </Link>
        <div className="ks-state">
          <Badge tone={tone} title={row.urgency}>
            {stateWords(row)}
          </Badge>
          <span className="ks-muted">
            {row.generation ? `generation ${row.generation}` : "never submitted"}
            {several && ` · ${row.cluster}`}
          </span>
        </div>
        {!row.findings.length && !quiet(row) && row.why && <p className="ks-why">{sentence(row.why)}</p>}
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
            <span title={moment(row.began.at)}>{away(row.began.at, now)}</span>
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

const quiet = (row: Row) => row.urgency === "well" || row.state === "running";

export function Findings({ row, now }: { row: Row; now: number }) {
  return (
    <ul className="ks-findings">
      {row.findings.map((finding) => (
        <li key={finding.kind + finding.words}>
          <strong>{sentence(finding.words)}</strong>
          {finding.since && <span className="ks-muted"> for {duration((now - Date.parse(finding.since)) / 1000)}</span>}
          {finding.why && <span className="ks-why">{sentence(finding.why)}</span>}
          {finding.way_out && (
            <span className="ks-out">
              <b>What now:</b> <Ticked text={finding.way_out} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Words with commands between backticks. */
export function Ticked({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}

export function HorizonWords({ row, now }: { row: Row; now: number }) {
  const { horizon, pushes } = row;
  const mode = horizon.credentials && <span className="ks-muted">{horizon.credentials}</span>;
  if (horizon.renews_itself) {
    return (
      <small>
        no end: it renews itself {mode && "· "}
        {mode}
      </small>
    );
  }
  if (!horizon.hard) {
    const rests = ["stopped", "held", "ended", "killed", "backing off"].includes(row.state);
    return <small className="ks-muted">{rests ? "nothing runs that could end" : "its end is not known"}</small>;
  }
  const past = now >= Date.parse(horizon.hard);
  return (
    <small title={barWords(horizon, now)}>
      <b className={past ? "ks-late" : undefined}>{past ? `ended ${away(horizon.hard, now)}` : `ends ${away(horizon.hard, now)}`}</b>
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
  const last = pushes!.confirmed ? `fresh tokens pushed ${away(pushes!.confirmed, now)}` : "no fresh tokens pushed yet";
  return horizon.push ? `${last}, the next ${Date.parse(horizon.push) > now ? away(horizon.push, now) : "are due"}` : last;
}

function Pulse({ row, now }: { row: Row; now: number }) {
  if (!row.pulse) return <span className="ks-muted">not watched</span>;
  const [words, tone] = pulseWords(row.pulse);
  return (
    <>
      <span className="ks-pulse" title={row.pulse_why}>
        <Badge tone={tone}>{words}</Badge>
      </span>
      <Sparkline seconds={row.batches} limit={row.stall_after} />
      <small className="ks-muted" title={row.committed ? moment(row.committed) : ""}>
        {row.committed ? `last commit ${away(row.committed, now)}` : "no commit yet"}
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
          {at && `, ${away(at, now)}`}
          {reason && `: ${reason}`}
        </small>
      )}
    </>
  );
}

export function WatchedBy({ row }: { row: Row }) {
  const { watcher } = row;
  if (!watcher.state) return <Badge tone={row.findings.length ? "bad" : "calm"}>nobody</Badge>;
  return (
    <>
      <a href={taskPage(watcher)} className="ks-clip" title={`${watcher.dag} / ${watcher.task}`}>
        {watcher.dag}
      </a>
      <small className="ks-muted">
        {watcher.task}, {watcher.state}
        {watcher.paused && ", DAG paused"}
      </small>
    </>
  );
}
