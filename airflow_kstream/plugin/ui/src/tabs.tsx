import { page } from "./api";

const TABS = [
  ["", "Streams"],
  ["files", "Files"],
  ["tickets", "Tickets"],
] as const;

export function Tabs({ at }: { at: string }) {
  const { Link } = ReactRouterDOM;
  return (
    <nav className="ks-tabs" aria-label="Pages">
      {TABS.map(([view, name]) => (
        <span key={view} className={view === at ? "ks-tab ks-here" : "ks-tab"} aria-current={view === at ? "page" : undefined}>
          <Link to={page(view ? { view } : {})}>{name}</Link>
        </span>
      ))}
    </nav>
  );
}
