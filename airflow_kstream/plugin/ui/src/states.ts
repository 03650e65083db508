import type { Tone } from "./parts";
import type { Row } from "./stored";

export const URGENCIES: [string, Tone][] = [
  ["needs a hand", "bad"],
  ["not seen", "bad"],
  ["under way", "busy"],
  ["ends within a day", "warn"],
  ["well", "good"],
  ["at rest", "calm"],
];

export const TONES: Record<string, Tone> = Object.fromEntries(URGENCIES);

const STEPS: Record<string, string> = {
  stop: "restart due",
  submit: "start due",
  kill: "kill due",
  wait: "waiting",
  refuse: "blocked",
  examine: "being examined",
  push: "push due",
  revoke: "tokens to revoke",
  giveup: "claim given up",
  note: "ended",
};

/** A phase in design's words; the name of a step that is due, as what it means for the stream. */
export function stateWords(row: Row): string {
  if (row.state === "stop" && row.desired.state === "stopped") return "stop due";
  return STEPS[row.state] ?? row.state;
}

const PULSES: Record<string, [string, Tone]> = {
  HEALTHY: ["healthy", "good"],
  IDLE: ["idle", "calm"],
  STARTING: ["starting", "busy"],
  SLOW: ["slow", "warn"],
  STALLED: ["stalled", "bad"],
  START_STALLED: ["start stalled", "bad"],
  CHECKPOINT_CHANGED: ["checkpoint changed", "bad"],
  NO_CHECKPOINT: ["no checkpoint", "bad"],
  UNKNOWN: ["unknown", "calm"],
};

const OVER = new Set(["stopped", "ended", "killed"]);

/** The pulse of a stream; of one that runs no longer, the last that was seen. */
export function pulseWords({ pulse, state }: Pick<Row, "pulse" | "state">): [string, Tone] {
  const [words, tone] = PULSES[pulse] ?? [pulse.toLowerCase().replaceAll("_", " "), "calm"];
  return OVER.has(state) ? [`last seen ${words}`, "calm"] : [words, tone];
}
