import { useAnswer, useNow } from "./api";
import { Empty, Failure, Loading, Mark } from "./parts";
import { StreamRow } from "./row";
import { URGENCIES } from "./states";
import type { Cluster, Fleet, Row } from "./stored";
import { ago, clock, count, moment, sentence, since } from "./words";

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
    <Empty title="No stream is declared that you may see">
      <p>For a stream to appear here</p>
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
    (row) => (!show || row.urgency === show) && (!name || `${row.cluster}/${row.stream} ${row.called}`.toLowerCase().includes(name.toLowerCase())),
  );
  // Nothing, before the first look at any of them.
  const newest = fleet.streams.reduce((last, { seen }) => (seen && !(Date.parse(seen) <= Date.parse(last)) ? seen : last), "");
  const late = newest !== "" && now - Date.parse(newest) > fleet.stale_after * 1000;
  return (
    <>
      <header className="ks-head">
        <div>
          <h1>Streams</h1>
          <p className="ks-muted">
            {count(fleet.streams.length, "stream")}
            {several && ` on ${count(clusters.size, "cluster")}`}
            {newest && (
              <>
                {" · "}
                <span className={late ? "ks-late" : undefined} title={moment(newest)}>
                  last look {ago(newest, now)}
                </span>
              </>
            )}{" "}
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
            <Mark tone="bad" /> Nobody has looked {since(newest, now)}
          </h2>
          <p>
            What you see is old. Look whether a triggerer runs (Admin → its health is on Airflow's first page), then at the log of a watching task.
          </p>
        </div>
      )}
      {fleet.unserved && (
        <div className="ks-note ks-bad" role="alert">
          <h2>
            <Mark tone="bad" /> Deferred tasks wait for a triggerer
          </h2>
          <p>{fleet.unserved}.</p>
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
              <th scope="col">
                Credentials
                <Legend rows={rows} />
              </th>
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

const TICKS: [string, "push" | "plan" | "force"][] = [
  ["fresh tokens", "push"],
  ["restart", "plan"],
  ["last call", "force"],
];

/** The meaning of the ticks on the bars below, of those that there are. */
function Legend({ rows }: { rows: Row[] }) {
  const shown = TICKS.filter(([, step]) => rows.some((row) => row.horizon[step]));
  return (
    <small className="ks-muted ks-legend">
      {shown.map(([words, step]) => (
        <span key={step}>
          <svg viewBox="0 0 3 11" aria-hidden="true">
            <line className={`ks-tick ks-${step}`} x1="1.5" x2="1.5" y1="0" y2="11" />
          </svg>
          {words}
        </span>
      ))}
    </small>
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
              {event.why} <span className="ks-muted">{sentence(since(event.since, now))}.</span>
            </p>
          </div>
        ))}
    </>
  );
}
