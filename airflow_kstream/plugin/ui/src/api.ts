// Questions to the pages' API and to Airflow's own. Both are answered as far as the reader's rights go.
import type { Watcher } from "./stored";

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

type Known<T> = Omit<Answer<T>, "reload">;

// The last answers: a page that is opened again, or whose card was read, is drawn at once, and then asked for.
const known = new Map<string, Known<unknown>>();

/** Asks now, and again every 15 s while the page is looked at. After an error it keeps what it had. */
export function useAnswer<T>(path: string): Answer<T> {
  const [state, set] = React.useState<Known<T>>((known.get(path) as Known<T> | undefined) ?? { data: null, at: 0, ahead: 0, error: null });
  const [turn, next] = React.useReducer((count: number) => count + 1, 0);
  React.useEffect(() => {
    let left = false;
    const look = () => {
      if (document.hidden) return;
      ask<T>(path).then(
        ({ data, ahead }) => {
          const answer = { data, ahead, at: Date.now(), error: null };
          known.set(path, answer);
          if (!left) set(answer);
        },
        (error: Refused) => {
          if (!left) set((before) => ({ ...before, error }));
        },
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

/** The text that a DAG's form begins with in this field: what is declared. Empty if it has none. */
export async function declaredText(dag: string, field: string): Promise<string> {
  const { params } = (await airflow(`dags/${encodeURIComponent(dag)}/details`)) as { params?: Record<string, { value?: unknown }> | null };
  const value = params?.[field]?.value;
  return typeof value === "string" ? value : "";
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
