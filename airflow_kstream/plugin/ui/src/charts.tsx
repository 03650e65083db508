import type { Horizon } from "./stored";
import { away, duration, moment } from "./words";

const WIDTH = 220;

/** The life of a generation's credentials, from their issue to their end, with what is done before it. */
export function HorizonBar({ horizon, now }: { horizon: Horizon; now: number }) {
  const { hard, plan, force, push, issued } = horizon;
  if (horizon.renews_itself) {
    return (
      <svg className="ks-bar" viewBox={`0 0 ${WIDTH} 14`} preserveAspectRatio="none" role="img" aria-label="no end: it renews itself">
        <rect className="ks-bar-self" x="0" y="4" width={WIDTH} height="6" rx="3" />
      </svg>
    );
  }
  if (!hard) return <div className="ks-bar ks-bar-none" aria-hidden="true" />;
  const end = Date.parse(hard);
  const begin = issued ? Date.parse(issued) : Math.min(now, end - 86_400_000);
  const x = (at: number) => Math.max(0, Math.min(1, (at - begin) / Math.max(end - begin, 1))) * WIDTH;
  const past = now >= end;
  const due = plan !== null && now >= Date.parse(plan);
  const tick = (at: string | null, name: string, mark: string) =>
    at && (
      <line className={`ks-tick ${mark}`} x1={x(Date.parse(at))} x2={x(Date.parse(at))} y1="0" y2="14">
        <title>{`${name} ${moment(at)}`}</title>
      </line>
    );
  return (
    <svg className="ks-bar" viewBox={`0 0 ${WIDTH} 14`} preserveAspectRatio="none" role="img" aria-label={barWords(horizon, now)}>
      <title>{barWords(horizon, now)}</title>
      <rect className="ks-bar-back" x="0" y="4" width={WIDTH} height="6" rx="3" />
      <rect className={past ? "ks-bar-past" : due ? "ks-bar-due" : "ks-bar-used"} x="0" y="4" width={x(now)} height="6" rx="3" />
      {tick(push, "fresh tokens are due", "ks-push")}
      {tick(plan, "a restart is planned from", "ks-plan")}
      {tick(force, "a restart is forced from", "ks-force")}
    </svg>
  );
}

export function barWords(horizon: Horizon, now: number): string {
  const parts = horizon.issued ? [`issued ${moment(horizon.issued)}`] : [];
  if (horizon.push) parts.push(`fresh tokens ${away(horizon.push, now)}`);
  if (horizon.plan) parts.push(`restart planned ${away(horizon.plan, now)}`);
  if (horizon.force) parts.push(`forced ${away(horizon.force, now)}`);
  if (horizon.hard) parts.push(`ends ${moment(horizon.hard)}`);
  return parts.join(", ");
}

/** The durations of the newest batches; what took longer than a batch may is marked by its height and a cap. */
export function Sparkline({ seconds, limit }: { seconds: number[]; limit: number | null }) {
  if (!seconds.length) return null;
  const top = Math.max(...seconds);
  const last = seconds[seconds.length - 1]!;
  const words = `the newest ${seconds.length} batches took ${duration(Math.min(...seconds))} to ${duration(top)}; the last ${duration(last)}`;
  return (
    <svg className="ks-spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={words}>
      <title>{limit ? `${words}; stalled after ${duration(limit)}` : words}</title>
      <path d={bars(seconds, (taken) => limit === null || taken <= limit)} />
      <path className="ks-over" d={bars(seconds, (taken) => limit !== null && taken > limit)} />
    </svg>
  );
}

/** One path for all bars of a kind: a fleet has ten thousand of them. */
function bars(seconds: number[], shown: (taken: number) => boolean): string {
  const top = Math.max(...seconds, 0.001);
  const step = 100 / Math.max(seconds.length, 12);
  const bar = (taken: number, index: number) => `M${(index * step).toFixed(1)} 24v${(-Math.max(2, (taken / top) * 22)).toFixed(1)}h${(step * 0.7).toFixed(1)}V24z`;
  return seconds.map((taken, index) => (shown(taken) ? bar(taken, index) : "")).join("");
}
