// Questions to the pages' API and to Airflow's own. Both are answered as far as the reader's rights go.

export interface Finding {
  kind: string;
  words: string;
  since: string | null;
  why: string;
  way_out: string;
}

export interface Horizon {
  hard: string | null;
  plan: string | null;
  force: string | null;
  push: string | null;
  issued: string | null;
  reason: string;
  renews_itself: boolean;
  credentials: string;
  uncounted: string[];
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

export interface Row {
  cluster: string;
  stream: string;
  urgency: string;
  state: string;
  why: string;
  generation: number;
  application: string | null;
  seen: string;
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
}

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Answer<T> {
  data: T | null;
  /** When the data was read, by this browser's clock. */
  at: number;
  /** The server's clock less this browser's, in milliseconds. */
  ahead: number;
  error: Refused | null;
  reload: () => void;
}

const EVERY = 15_000;

export function url(path: string): string {
  return new URL(path, document.baseURI).href;
}

async function read(response: Response): Promise<unknown> {
  if (!response.headers.get("content-type")?.includes("application/json")) {
    throw new Refused(response.status, "no-json");
  }
  return response.json();
}

async function ask<T>(path: string): Promise<{ data: T; ahead: number }> {
  const response = await fetch(url(path), { credentials: "same-origin", cache: "no-cache" }).catch(() => {
    throw new Refused(0, "no answer");
  });
  if (!response.ok) throw new Refused(response.status, response.statusText);
  const date = Date.parse(response.headers.get("date") ?? "");
  const ahead = Number.isNaN(date) ? 0 : date - Date.now();
  // The header has whole seconds: a smaller difference is none.
  return { data: (await read(response)) as T, ahead: Math.abs(ahead) < 2000 ? 0 : ahead };
}

/** Asks now, and again every 15 s while the page is looked at. After an error it keeps what it had. */
export function useAnswer<T>(path: string): Answer<T> {
  const [state, set] = React.useState<Omit<Answer<T>, "reload">>({ data: null, at: 0, ahead: 0, error: null });
  const [turn, next] = React.useReducer((count: number) => count + 1, 0);
  React.useEffect(() => {
    let left = false;
    const look = () => {
      if (document.hidden) return;
      ask<T>(path).then(
        ({ data, ahead }) => left || set({ data, ahead, at: Date.now(), error: null }),
        (error: Refused) => left || set((before) => ({ ...before, error })),
      );
    };
    look();
    const timer = setInterval(look, EVERY);
    document.addEventListener("visibilitychange", look);
    return () => {
      left = true;
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [path, turn]);
  return { ...state, reload: next };
}

/** The server's time, again each so many milliseconds. */
export function useNow(ahead: number, every = 1000): number {
  const [now, set] = React.useState(Date.now());
  React.useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now + ahead;
}

export interface Run {
  dag_run_id: string;
  state: string;
}

async function airflow(path: string, init: RequestInit = {}): Promise<unknown> {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(url(`api/v2/${path}`), { credentials: "same-origin", headers, ...init }).catch(() => {
    throw new Refused(0, "Airflow's API server does not answer");
  });
  if (response.ok) return read(response);
  const told = (await response.json().catch(() => ({}))) as { detail?: unknown };
  const detail = typeof told.detail === "string" ? told.detail : JSON.stringify(told.detail ?? "");
  throw new Refused(response.status, detail || response.statusText);
}

const run = (dag: string, id = "") => `dags/${encodeURIComponent(dag)}/dagRuns${id && `/${encodeURIComponent(id)}`}`;

/** Starts a run of a DAG with the reader's own rights: Airflow decides, and its audit log keeps it. */
export async function startRun(dag: string, conf: Record<string, unknown>): Promise<Run> {
  const body = JSON.stringify({ logical_date: null, conf });
  return (await airflow(run(dag), { method: "POST", body })) as Run;
}

export async function readRun(dag: string, id: string): Promise<Run> {
  return (await airflow(run(dag, id))) as Run;
}

export function runPage(dag: string, id: string): string {
  return url(`dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(id)}`);
}

export function taskPage(watcher: Watcher): string {
  const mapped = watcher.map_index >= 0 ? `/mapped/${watcher.map_index}` : "";
  return `${runPage(watcher.dag, watcher.run)}/tasks/${encodeURIComponent(watcher.task)}${mapped}`;
}

/** The address of a page of ours, for Airflow's router. */
export function page(where: Record<string, string> = {}): string {
  const query = new URLSearchParams(where).toString();
  return `/plugin/kstream${query && `?${query}`}`;
}

export interface Progress {
  path: string;
  planned: number;
  committed: number;
  last_commit: string | null;
  in_flight: string | null;
  stall_after: number;
  batches: [number, number][];
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
  addresses: { application?: string; logs?: string };
  diagnostics: string;
  failure: string;
  logs_seconds: number | null;
  blocked: { by: string; since: string | null; why: string } | null;
  freeze: string;
  cut: boolean;
}

export interface OpenFile {
  path: string;
  condition: string;
  why: string;
  advice: string;
  owner: string;
  host: string | null;
  holder: string | null;
  stream: string | null;
  application: string | null;
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
  expiry: string | null;
  renew_until: string | null;
  failures: number;
  failing_since: string | null;
  error: string;
  alert: boolean;
  at: string;
}

export interface Keytab {
  principal: string;
  keytab: string;
  kvno: number | null;
  kdc_kvno: number | null;
  login: string | null;
  severity: string | null;
  findings: { kind: string; severity: string; words: string; remedy: string }[];
  streams: { stream: string; generation: number; dies_from: string | null; fails_from: string | null }[];
  at: string;
}

export interface Tickets {
  clusters: { cluster: string; form: Form | null; tickets: Ticket[]; keytabs: Keytab[] }[];
}
