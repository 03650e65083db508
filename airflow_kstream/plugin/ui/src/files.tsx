import { RunDialog } from "./actions";
import { declaredText, page, runPage, useAnswer, useNow } from "./api";
import { AnswerPage, Badge, Empty, Ticked, type Tone } from "./parts";
import type { Files, FilesPath, Form, OpenFile, Recovery } from "./stored";
import { ago, bytes, count, duration, moment, sentence } from "./words";

/** The open files that the last runs over them found. */
export function FilesPage() {
  const answer = useAnswer<Files>("kstream/api/files");
  const now = useNow(answer.ahead);
  return (
    <AnswerPage title="Files" lead="Open for write on HDFS, as the last run over each path found them." what="files" answer={answer}>
      {({ clusters }) =>
        clusters.length === 0 ? (
          <NoFiles />
        ) : (
          clusters.map(({ cluster, form, paths }) =>
            paths.map((path) => <PathPanel key={`${cluster} ${path.path}`} cluster={cluster} form={form} path={path} now={now} reload={answer.reload} />),
          )
        )
      }
    </AnswerPage>
  );
}

function NoFiles() {
  return (
    <Empty title="No run has looked for open files yet">
      <ol>
        <li>
          Name the folders in a file <code>&lt;connection id&gt;.yaml</code> of <code>[kstream] leases_folder</code>;
        </li>
        <li>
          unpause its DAG <code>leases-&lt;connection id&gt;</code>: it looks every 15 minutes.
        </li>
      </ol>
      <p>
        You see runs of DAGs that you may read. <code>kstream leases list PATH</code> looks at once.
      </p>
    </Empty>
  );
}

const LEAKED = "holder alive without progress";

const CONDITIONS: Record<string, Tone> = {
  "holder dead": "bad",
  [LEAKED]: "bad",
  unrecoverable: "bad",
  unknown: "warn",
  idle: "calm",
  young: "calm",
  "not watched long enough": "calm",
  growing: "good",
  closed: "good",
};

interface OnePath {
  cluster: string;
  form: Form | null;
  path: FilesPath;
  now: number;
  reload: () => void;
}

function PathPanel({ cluster, form, path, now, reload }: OnePath) {
  const [file, choose] = React.useState<OpenFile | null>(null);
  const stuck = path.files.filter((each) => each.stuck).length;
  return (
    <section className="ks-panel" aria-label={path.path} data-path={path.path}>
      <div className="ks-panel-head">
        <h2>
          {path.path} <span className="ks-muted ks-thin">on {cluster}</span>
        </h2>
        <small className="ks-muted">
          <a href={runPage(path.dag, path.run)} title={moment(path.at)}>
            looked at {ago(path.at, now)}
          </a>
          {path.by && ` for ${path.by}`}
          {path.dry_run && ", a dry run"}
        </small>
      </div>
      <div className="ks-state">
        {(stuck > 0 || path.unjudged.count === 0) && <Badge tone={stuck ? "bad" : "good"}>{stuck ? `${stuck} stuck` : "none stuck"}</Badge>}
        {path.unjudged.count > 0 && <Badge tone="warn">{`${path.unjudged.count} can't be judged`}</Badge>}
        <span className="ks-muted">
          {count(path.counts.open ?? path.files.length + path.closed, "open file")} found
          {path.closed > 0 && `, ${path.closed} closed since`}
        </span>
      </div>
      {path.unjudged.why && (
        <p className="ks-late">
          <Ticked text={sentence(path.unjudged.why)} />
        </p>
      )}
      {path.stopped && <p className="ks-late">It stopped early: {path.stopped}</p>}
      {path.files.length > 0 && (
        <table className="ks-plain ks-stack">
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col">Condition</th>
              <th scope="col">Unchanged for</th>
              <th scope="col">Length</th>
              <th scope="col">
                <span className="ks-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {path.files.map((each) => (
              <FileRow key={each.path} file={each} cluster={cluster} form={form} choose={() => choose(each)} now={now} />
            ))}
          </tbody>
        </table>
      )}
      {path.recoveries.length > 0 && <Recoveries recoveries={path.recoveries} />}
      {path.runs.length > 1 && (
        <details className="ks-history">
          <summary>Earlier runs</summary>
          <ul className="ks-events">
            {path.runs
              .slice(0, -1)
              .toReversed()
              .map((run) => (
                <li key={run.run}>
                  <span className="ks-muted ks-when" title={moment(run.at)}>
                    {ago(run.at, now)}
                  </span>
                  <span>
                    {run.summary}
                    {run.dry_run && " (a dry run)"}
                    {run.by && <span className="ks-muted"> – {run.by}</span>}
                  </span>
                </li>
              ))}
          </ul>
        </details>
      )}
      {file && form && (
        <RecoverDialog
          file={file}
          form={form}
          close={(changed) => {
            choose(null);
            if (changed) reload();
          }}
        />
      )}
    </section>
  );
}

function FileRow({ file, cluster, form, choose, now }: { file: OpenFile; cluster: string; form: Form | null; choose: () => void; now: number }) {
  const { Link } = ReactRouterDOM;
  const length = file.visible_length ?? file.length ?? 0;
  return (
    <tr data-file={file.path}>
      <td>
        <span className="ks-path">{file.path}</span>
        <small className="ks-muted">
          opened by {file.owner}
          {file.stream ? (
            <>
              , stream <Link to={page({ cluster, stream: file.stream })}>{file.stream}</Link>
            </>
          ) : file.application ? (
            `, ${file.application}`
          ) : (
            file.host && `, from ${file.host}`
          )}
          , {ago(file.open_since, now)}
        </small>
      </td>
      <td className="ks-wide">
        <Badge tone={CONDITIONS[file.condition] ?? "calm"}>{file.condition}</Badge>
        <small className="ks-muted">{sentence(file.why)}</small>
        {file.planned && <small>{sentence(file.planned)}</small>}
        {file.advice && (
          <small>
            <Ticked text={sentence(file.advice)} />
          </small>
        )}
      </td>
      <td data-label="Unchanged for">
        {duration(file.unchanged_seconds)}
        <small className="ks-muted">in {count(file.checks, "check")}</small>
      </td>
      <td data-label="Length" title={`${length} bytes`}>{bytes(length)}</td>
      <td>
        {form && (
          <button type="button" className="ks-button" disabled={!form.may} title={form.may ? "" : `You may not start runs of ${form.dag}`} onClick={choose}>
            Recover …
          </button>
        )}
      </td>
    </tr>
  );
}

function Recoveries({ recoveries }: { recoveries: Recovery[] }) {
  return (
    <>
      <h3>What was done</h3>
      <table className="ks-plain ks-stack">
        <tbody>
          {recoveries.map((each) => (
            <tr key={each.path} data-recovered={each.path}>
              <td className="ks-path">{each.path}</td>
              <td>
                <Badge tone={["closed", "already closed", "gone"].includes(each.outcome) ? "good" : "bad"}>{each.outcome}</Badge>
                {each.why && <small className="ks-muted">{sentence(each.why)}</small>}
              </td>
              <td>
                {each.length_after !== null && bytes(each.length_after)}
                {each.bytes_lost ? <b className="ks-late"> {bytes(each.bytes_lost)} lost</b> : <small className="ks-muted">{sentence(each.kept)}</small>}
              </td>
              <td className="ks-muted">{each.seconds > 0 && `within ${duration(each.seconds)}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function RecoverDialog({ file, form, close }: { file: OpenFile; form: Form; close: (changed: boolean) => void }) {
  const [approve, setApprove] = React.useState(false);
  const [dry, setDry] = React.useState(false);
  const [age, setAge] = React.useState("");
  // As the declaration says, also for a run that comes before the answer.
  React.useEffect(() => void declaredText(form.dag, "min_age").then((declared) => setAge((typed) => typed || declared), () => undefined), []);
  const alive = file.condition !== "holder dead";
  const aged = age === "" || /^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/.test(age);
  const approved = dry || approve || file.condition !== LEAKED;
  const lacks = !aged ? "An age is written like 90s, 15m or 6h." : approved ? "" : "Its holder lives: tick that it is closed although it does, or a dry run.";
  const conf = () => ({ paths: [file.path], patterns: [], ...(age && { min_age: age }), approve: approve ? [file.path] : [], dry_run: dry });
  return (
    <RunDialog
      title="Recover this file?"
      sentTitle="Recover this file"
      done="done: this page shows it once this is closed"
      button={dry ? "See what would be done" : "Recover it"}
      dag={form.dag}
      conf={conf}
      lacks={lacks}
      destroys={!dry}
      close={close}
      head={
        <>
          <p className="ks-path">
            <code>{file.path}</code>
          </p>
          <p>
            The run looks at it again, and leaves it alone if it grows or anything about it changed. Else it has the NameNode close it at the length that was flushed: its writer can't
            go on with it.
          </p>
          <p className="ks-muted">
            In the last run: {file.condition}. {sentence(file.why)}
          </p>
        </>
      }
    >
      <label className="ks-field">
        Only if it was opened at least this long ago
        <input type="text" value={age} onChange={(event) => setAge(event.target.value)} />
        <small>A younger file is left alone. Written like 90s, 15m, 6h; left empty, it is the age that is declared.</small>
      </label>
      {alive && (
        <label className="ks-check">
          <input type="checkbox" checked={approve} onChange={(event) => setApprove(event.target.checked)} /> Close it although its holder lives. What the writer did not flush is lost; the
          journal names me.
        </label>
      )}
      <label className="ks-check">
        <input type="checkbox" checked={dry} onChange={(event) => setDry(event.target.checked)} /> A dry run: only say what would be done.
      </label>
    </RunDialog>
  );
}
