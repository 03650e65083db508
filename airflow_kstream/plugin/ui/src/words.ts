// Durations and moments in words. A moment is in the zone that the reader chose in Airflow, and its zone is said.

const UNITS: [string, number][] = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

// A line breaks between two units, never between a number and its unit.
const withUnit = (number: number, unit: string) => `${number}\u00a0${unit}`;

/** The two largest units of a duration in seconds: `4 d 3 h`, `12 s`; below a second `350 ms`. */
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size > 0 && size < 1) return withUnit(Math.round(size * 1000), "ms");
  if (size < 10) return withUnit(Number(size.toFixed(1)), "s");
  let rest = Math.round(size);
  const parts: string[] = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count) parts.push(withUnit(count, unit));
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** How far away a moment is: `in 5 min` or `5 min ago`. */
export function away(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1000;
  return seconds >= 0 ? `in ${duration(seconds)}` : `${duration(seconds)} ago`;
}

/** How long ago something was seen. Another host's clock may be ahead of this one: then it is now. */
export function ago(at: string, now: number): string {
  return `${duration(Math.max(0, (now - Date.parse(at)) / 1000))} ago`;
}

// To make one takes longer than to use it a hundred times.
const formats = new Map<string, Intl.DateTimeFormat>();
const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" } as const;
const STYLES = {
  clock: TIME,
  day: { ...TIME, day: "numeric", month: "short" },
  year: { ...TIME, day: "numeric", month: "short", year: "numeric" },
} as const;

/** The zone that the reader chose in Airflow, as it stores it; the browser's own without one. */
function zone(): string | undefined {
  try {
    const chosen: unknown = JSON.parse(localStorage.getItem("timezone") ?? "null");
    return typeof chosen === "string" ? chosen : undefined;
  } catch {
    return undefined;
  }
}

function format(style: keyof typeof STYLES): Intl.DateTimeFormat {
  const timeZone = zone();
  const key = `${style} ${timeZone}`;
  const made = formats.get(key) ?? make(STYLES[style], timeZone);
  formats.set(key, made);
  return made;
}

function make(style: Intl.DateTimeFormatOptions, timeZone?: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-GB", { ...style, timeZone });
  } catch {
    // A zone that this browser does not know.
    return new Intl.DateTimeFormat("en-GB", style);
  }
}

/** A moment with its zone: `24 Nov, 14:03:22 CET`. */
export function moment(at: string | number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "not known";
  return format(date.getFullYear() === new Date().getFullYear() ? "day" : "year").format(date);
}

/** The time of day with its zone. */
export function clock(at: number): string {
  return format("clock").format(at);
}

/** Since when something lasts, which no reader takes for how long it still will: `since 14:03:22 CET, 39 s ago`. */
export function since(at: string, now: number): string {
  const begin = Date.parse(at);
  return `since ${now - begin < 43_200_000 ? clock(begin) : moment(at)}, ${ago(at, now)}`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

export function bytes(size: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let left = size;
  for (const unit of units) {
    if (left < 1000 || unit === "TB") return `${Number(left.toFixed(left < 10 && unit !== "B" ? 1 : 0))} ${unit}`;
    left /= 1000;
  }
  return `${size} B`;
}

/** The text with a capital, unless its first word is a name: an id, a path or an address. */
export function sentence(text: string): string {
  const name = /[_/@0-9.:]/.test(text.split(" ", 1)[0]!.replace(/[.:,;]$/, ""));
  return name || !text ? text : text[0]!.toUpperCase() + text.slice(1);
}
