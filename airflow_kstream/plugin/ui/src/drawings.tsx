import type { Facts, Life, Progress, Row } from "./stored";
import { ago, away, count, duration, moment } from "./words";

interface Span {
  begin: number;
  end: number;
}

const at = (span: Span, moment: number) => `${(Math.max(0, Math.min(1, (moment - span.begin) / (span.end - span.begin))) * 100).toFixed(2)}%`;
const width = (span: Span, from: number, to: number) =>
  `${(Math.max(0, (Math.min(to, span.end) - Math.max(from, span.begin)) / (span.end - span.begin)) * 100).toFixed(2)}%`;

/** The life of the tokens: their issue, renewals, pushes, the window in which a restart comes, and their end. */
export function TokenStory({ row, facts, now }: { row: Row; facts: Facts | null; now: number }) {
  const { horizon } = row;
  if (!horizon.runs) return <p className="ks-muted">Nothing runs whose credentials could end.</p>;
  const issued = horizon.issued ? Date.parse(horizon.issued) : null;
  const hard = horizon.hard ? Date.parse(horizon.hard) : null;
  const renewal = facts?.renew_interval ? facts.renew_interval * 1000 : null;
  if (issued === null || (hard === null && !horizon.renews_itself)) {
    return <p className="ks-muted">{horizon.renews_itself ? "It renews itself." : `Its end is not known: ${horizon.reason}.`}</p>;
  }
  const end = hard ?? Math.max(now, issued) + (renewal ?? 86_400_000);
  const span = { begin: issued, end: Math.max(end, now) + (Math.max(end, now) - issued) * 0.04 };
  const plan = horizon.plan ? Date.parse(horizon.plan) : null;
  const force = horizon.force ? Date.parse(horizon.force) : null;
  const push = horizon.push ? Date.parse(horizon.push) : null;
  // A name that would stand on that of the end is left out: the list below has it.
  const roomFor = (name: string, when: number) => name === "end" || hard === null || Math.abs(hard - when) > 0.12 * (span.end - span.begin);
  const renewals: number[] = [];
  if (renewal) for (let next = issued + renewal; next < (hard ?? now) && renewals.length < 60; next += renewal) renewals.push(next);
  const steps: [string, string | null, string][] = [
    ["issued", horizon.issued, horizon.renews_itself ? "its first tokens are from then, or later" : "its tokens are from then, or later: their end is counted from it"],
    ["push", horizon.push, "fresh tokens are pushed into it"],
    ["restart", horizon.plan, "it is restarted, once a successor could start"],
    ["last call", horizon.force, "it is restarted even if it is not sure that a successor could start"],
    ["end", horizon.hard, horizon.reason],
  ];
  return (
    <div className="ks-story">
      <svg className="ks-draw" height="74" role="img" aria-label={steps.filter(([, when]) => when).map(([name, when]) => `${name} ${moment(when!)}`).join(", ")}>
        <rect className="ks-life" x={at(span, issued)} width={width(span, issued, end)} y="26" height="20" rx="4" />
        <rect className="ks-lived" x={at(span, issued)} width={width(span, issued, Math.min(now, end))} y="26" height="20" rx="4" />
        {plan !== null && hard !== null && <rect className="ks-window" x={at(span, plan)} width={width(span, plan, force ?? hard)} y="26" height="20" />}
        {force !== null && hard !== null && <rect className="ks-danger-zone" x={at(span, force)} width={width(span, force, hard)} y="26" height="20" />}
        {renewals.map((when) => (
          <line key={when} className="ks-renewal" x1={at(span, when)} x2={at(span, when)} y1="42" y2="52">
            <title>{`renewed, at the latest ${moment(when)}`}</title>
          </line>
        ))}
        {[
          ["restart", plan],
          ["last call", force],
          ["end", hard],
          ["push", push],
        ].map(([name, when]) =>
          when === null ? null : (
            <g key={name as string} className={`ks-flag ks-flag-${(name as string).replace(" ", "-")}`}>
              <line x1={at(span, when as number)} x2={at(span, when as number)} y1="20" y2="52" />
              {roomFor(name as string, when as number) && (
                <text x={at(span, when as number)} y="66" textAnchor="middle">
                  {name}
                </text>
              )}
            </g>
          ),
        )}
        <g className="ks-now">
          <line x1={at(span, now)} x2={at(span, now)} y1="14" y2="58" />
          <text x={at(span, now)} y="10" textAnchor="middle">
            now
          </text>
        </g>
      </svg>
      <dl className="ks-steps">
        {steps.map(([name, when, words]) =>
          when ? (
            <div key={name}>
              <dt className={`ks-step-${name.replace(" ", "-")}`}>{name}</dt>
              <dd>
                <b>{away(when, now)}</b> <span className="ks-muted">{moment(when)}</span>
                <br />
                {words}
              </dd>
            </div>
          ) : null,
        )}
        {renewal !== null && (
          <div>
            <dt className="ks-step-renewal">renewals</dt>
            <dd>
              <b>every {duration(renewal / 1000)}</b>
              <br />
              {horizon.renews_itself ? "it makes new tokens from its keytab before each" : "the ResourceManager renews them up to their max-lifetime"}
              {facts?.max_lifetime ? (horizon.renews_itself ? `; max-lifetime is ${duration(facts.max_lifetime)}` : ` of ${duration(facts.max_lifetime)}`) : ""}
            </dd>
          </div>
        )}
      </dl>
    </div>
  );
}

/** The generations as bars on one axis. */
export function Lives({ lives, now }: { lives: Life[]; now: number }) {
  if (!lives.length) return <p className="ks-muted">No generation is stored yet: its task stores them when it next acts.</p>;
  const begin = Date.parse(lives[0]!.began);
  const span = { begin, end: Math.max(now, begin + 1000) };
  return (
    <>
      <svg className="ks-draw" height="34" role="img" aria-label={`${count(lives.length, "generation")} since ${moment(begin)}`}>
        {lives.map((life) => {
          const from = Date.parse(life.began);
          const to = life.ended ? Date.parse(life.ended) : now;
          const kind = life.ended ? (life.planned ? "planned" : "unplanned") : "lives";
          return (
            <g key={life.generation}>
              <rect className={`ks-gen ks-gen-${kind}`} x={at(span, from)} width={width(span, from, to)} y="4" height="22" rx="3">
                <title>{`generation ${life.generation}: ${life.end || life.why}`}</title>
              </rect>
              {(to - from) / (span.end - span.begin) > 0.025 && (
                <text className="ks-gen-name" x={at(span, from + (to - from) / 2)} y="19" textAnchor="middle">
                  {kind === "unplanned" ? `✕ ${life.generation}` : life.generation}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <table className="ks-plain">
        <thead>
          <tr>
            <th scope="col">Generation</th>
            <th scope="col">Began</th>
            <th scope="col">Lived</th>
            <th scope="col">Why it ended</th>
            <th scope="col">Claimed by</th>
          </tr>
        </thead>
        <tbody>
          {lives.toReversed().map((life) => (
            <tr key={life.generation}>
              <td>
                {life.generation}
                {life.adopted && <small className="ks-muted">adopted</small>}
              </td>
              <td title={moment(life.began)}>{ago(life.began, now)}</td>
              <td>{duration(((life.ended ? Date.parse(life.ended) : now) - Date.parse(life.began)) / 1000)}</td>
              <td className="ks-wide">
                {life.ended ? (
                  <>
                    <b className={life.planned ? "" : "ks-late"}>{life.planned ? "planned: " : "by itself: "}</b>
                    {life.end || "not known"}
                  </>
                ) : (
                  <span className="ks-muted">{life.end ? `asked to stop: ${life.end}` : "it lives"}</span>
                )}
              </td>
              <td className="ks-muted">{life.by}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** What one checkpoint shows: the batches that it has against the time after which one counts as stalled, and the newest. */
export function Batches({ progress, drawn, now }: { progress: Progress; drawn: string | null; now: number }) {
  const { batches, stall_after: limit, in_flight: since, unit = "batch" } = progress;
  // As of that look: a batch that was in flight then may be committed by now.
  const flying = since ? Math.max(0, ((drawn ? Date.parse(drawn) : now) - Date.parse(since)) / 1000) : null;
  const bars: [number, number, boolean][] = batches.map(([number, taken]) => [number, taken, false]);
  if (flying !== null) bars.push([progress.planned, flying, true]);
  if (!bars.length && progress.committed < 0) return <p className="ks-muted">{unit === "batch" ? "No batch is committed yet." : `No ${unit} is complete yet.`}</p>;
  const sorted = batches.map(([, taken]) => taken).toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  return (
    <div>
      {bars.length > 0 && <Bars bars={bars} limit={limit} />}
      <dl className="ks-figures">
        <Figure name={unit === "batch" ? "committed" : "newest"}>
          {unit} {progress.committed}
        </Figure>
        <Figure name={unit === "batch" ? "last commit" : "complete"}>{progress.last_commit ? ago(progress.last_commit, now) : "none yet"}</Figure>
        {flying !== null && (
          <Figure name="in flight">
            {unit} {progress.planned}, {duration(flying)} so far
          </Figure>
        )}
        {median !== undefined && <Figure name={`median of ${sorted.length}`}>{duration(median)}</Figure>}
        {sorted.length > 0 && <Figure name="longest">{duration(sorted[sorted.length - 1]!)}</Figure>}
        <Figure name="stalled after">{duration(limit)}</Figure>
      </dl>
      <small className="ks-muted ks-path">{progress.path}</small>
    </div>
  );
}

/** Batches as bars of their seconds, each with its number and whether it is in flight. */
function Bars({ bars, limit }: { bars: [number, number, boolean][]; limit: number }) {
  const longest = Math.max(...bars.map(([, taken]) => taken), 0.001);
  const shown = longest > limit / 4;
  const top = shown ? Math.max(longest, limit) * 1.12 : longest * 1.12;
  const step = 100 / Math.max(bars.length, 20);
  const y = (seconds: number) => 110 - (seconds / top) * 104;
  return (
    <svg className="ks-draw ks-batches" height="118" role="img" aria-label={`batches ${bars[0]![0]} to ${bars[bars.length - 1]![0]}, the longest ${duration(longest)}, stalled after ${duration(limit)}`}>
      {[0.25, 0.5, 0.75].map((part) => (
        <line key={part} className="ks-grid" x1="0" x2="100%" y1={y((top / 1.12) * part)} y2={y((top / 1.12) * part)} />
      ))}
      {bars.map(([number, taken, open], index) => (
        <rect
          key={number}
          className={taken > limit ? "ks-over" : open ? "ks-open" : undefined}
          x={`${index * step}%`}
          width={`${step * 0.72}%`}
          y={Math.min(y(taken), 108)}
          height={Math.max(2, 110 - y(taken))}
        >
          <title>{`batch ${number}: ${duration(taken)}${open ? " so far" : ""}`}</title>
        </rect>
      ))}
      {shown && (
        <>
          <line className="ks-limit" x1="0" x2="100%" y1={y(limit)} y2={y(limit)} />
          <text className="ks-limit-text" x="100%" y={y(limit) - 4} textAnchor="end">
            stalled after {duration(limit)}
          </text>
        </>
      )}
      <line className="ks-axis" x1="0" x2="100%" y1="111" y2="111" />
    </svg>
  );
}

function Figure({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
