// What the pages' API answers, as airflow_kstream/views/pages makes it.

export interface Finding {
  kind: string;
  words: string;
  since: string | null;
  why: string;
  way_out: string;
  /** The address of its entry in the runbook; empty where nobody serves the site. */
  runbook: string;
  /** Nothing is left to do but to wait. */
  waits: boolean;
}

export interface Horizon {
  hard: string | null;
  plan: string | null;
  force: string | null;
  push: string | null;
  issued: string | null;
  reason: string;
  renews_itself: boolean;
  /** Whether anything runs that its credentials serve. */
  runs: boolean;
  credentials: string;
  uncounted: string[];
  /** From when on what it loses can't be replaced, in words; empty if there is nothing to warn of. */
  warning: string;
  /** What a hold means for its end, in words; empty if it is not held. */
  held: string;
}

export interface Pushes {
  confirmed: string | null;
  trouble: string;
}

export interface Watcher {
  dag: string;
  run: string;
  task: string;
  map_index: number;
  state: string;
  paused: boolean;
}

export interface Desired {
  state?: string;
  by?: string;
  at?: string | null;
  reason?: string;
  restart_up_to?: number;
}

export type Word = "hold" | "start" | "restart" | "stop";

export interface Row {
  cluster: string;
  stream: string;
  /** Its name for people, with the id in brackets where that differs. */
  called: string;
  urgency: string;
  state: string;
  why: string;
  generation: number;
  application: string | null;
  /** When somebody looked; null before the first look. */
  seen: string | null;
  stale: boolean;
  pulse: string;
  pulse_why: string;
  committed: string | null;
  batches: number[];
  stall_after: number | null;
  horizon: Horizon;
  pushes: Pushes | null;
  began: { at: string | null; why: string };
  desired: Desired;
  /** What each word that is offered would do. */
  actions: Partial<Record<Word, string>>;
  watcher: Watcher;
  findings: Finding[];
}

/** A DAG whose form a page fills in, and whether the reader may start it. */
export interface Form {
  dag: string;
  may: boolean;
}

export interface Cluster {
  id: string;
  form: Form | null;
  told: { kind: string; about: string; since: string; why: string }[];
}

export interface Fleet {
  streams: Row[];
  clusters: Cluster[];
  stale_after: number;
  /** What no triggerer serves, and what to set; empty if nothing waits. */
  unserved: string;
}

export interface Progress {
  path: string;
  planned: number;
  committed: number;
  last_commit: string | null;
  in_flight: string | null;
  stall_after: number;
  batches: [number, number][];
  /** The engine's word for a batch; rows of earlier versions have none. */
  unit?: string;
}

export interface Facts {
  generation: number;
  claimed: string | null;
  claimed_by: string;
  reason: string;
  adopted: boolean;
  credentials: string;
  issued: string | null;
  renew_interval: number | null;
  max_lifetime: number | null;
  progress: Progress[];
}

export interface Life {
  generation: number;
  began: string;
  by: string;
  why: string;
  adopted: boolean;
  ended: string | null;
  end: string;
  planned: boolean;
}

export interface Told {
  kind: string;
  words: string;
  since: string;
  until: string | null;
  why: string;
}

export interface Submission {
  notes: string[];
  binary: string;
  parts: { text: string; source: string; why: string }[];
}

export interface StreamStored {
  row: Row;
  cluster: Cluster;
  facts: Facts | null;
  /** When the look was that the facts are of. */
  drawn: string | null;
  lives: Life[];
  events: Told[];
  submission: Submission | null;
  differences: string[];
  doubts: string[];
  done: { at: string; what: string; why: string }[];
  /** What the doctor expects for its generation, each sentence with its date. */
  foretold: string[];
  addresses: { application?: string; logs?: string };
  diagnostics: string;
  failure: string;
  logs_seconds: number | null;
  blocked: { by: string; since: string | null; why: string } | null;
  freeze: string;
  /** How evidence of a stall is taken and where it lies, in words; empty without a stall. */
  evidence: string;
  cut: boolean;
}

export interface OpenFile {
  path: string;
  condition: string;
  why: string;
  advice: string;
  owner: string;
  host: string;
  holder: string;
  stream: string;
  application: string;
  unchanged_seconds: number;
  open_since: string;
  length: number;
  visible_length: number | null;
  checks: number;
  stuck: boolean;
  planned: string;
}

export interface Recovery {
  path: string;
  outcome: string;
  why: string;
  length_before: number | null;
  visible_before: number | null;
  length_after: number | null;
  bytes_lost: number | null;
  /** That readers lost nothing, in words; empty if they did. */
  kept: string;
  seconds: number;
}

export interface FilesRun {
  at: string;
  run: string;
  by: string;
  dry_run: boolean;
  summary: string;
}

export interface FilesPath {
  path: string;
  at: string;
  run: string;
  dag: string;
  by: string;
  dry_run: boolean;
  /** Of the files found, those that are closed by now. */
  closed: number;
  /** Open files of which nobody can say whether they are stuck, and the most frequent reason. */
  unjudged: { count: number; why: string };
  counts: { open?: number; left_alone?: number; failed?: number; bytes_lost?: number };
  stopped: string;
  files: OpenFile[];
  recoveries: Recovery[];
  runs: FilesRun[];
}

export interface Files {
  clusters: { cluster: string; form: Form | null; paths: FilesPath[] }[];
}

export interface Ticket {
  principal: string;
  state: string;
  outcome: string;
  /** Moments; empty where there is none. */
  expiry: string;
  renew_until: string;
  failing_since: string;
  failures: number;
  error: string;
  alert: boolean;
  at: string;
}

export interface Keytab {
  principal: string;
  keytab: string;
  kvno: number | null;
  kdc_kvno: number | null;
  login: string;
  severity: string;
  findings: { kind: string; severity: string; words: string; remedy: string }[];
  /** Those that it ends, each with the moment, or empty where none is known. */
  streams: { stream: string; dies_from: string }[];
  at: string;
}

export interface Tickets {
  clusters: { cluster: string; form: Form | null; tickets: Ticket[]; keytabs: Keytab[] }[];
}
