import { FilesPage } from "./files";
import { FleetPage } from "./fleet";
import { Empty } from "./parts";
import { StreamPage } from "./stream";
import { Tabs } from "./tabs";
import { TicketsPage } from "./tickets";

// What the id of a stream can be, as model/names.py has it: no other text of an address is shown.
const ID = /^[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?$/;

/** What follows the page's own path: of `/plugin/kstream/prod/orders` the cluster and the stream. */
function below(path: string): string[] {
  return path.replace(/^.*?\/plugin\/kstream/, "").split("/").filter(Boolean).map(decoded);
}

/** A part of an address; empty if it can't be decoded, like `%`. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function App() {
  const [query] = ReactRouterDOM.useSearchParams();
  const parts = below(ReactRouterDOM.useLocation().pathname);
  const [cluster, stream] = parts.length ? parts : [query.get("cluster"), query.get("stream")];
  const view = query.get("view") ?? "";
  const nowhere = (parts.length > 0 && !(parts.length === 2 && cluster && stream)) || (!!stream && !ID.test(stream));
  return (
    <section className="ks">
      <Tabs at={view} />
      {view === "files" && <FilesPage />}
      {view === "tickets" && <TicketsPage />}
      {!view && !nowhere && cluster && stream && <StreamPage key={`${cluster}/${stream}`} cluster={cluster} stream={stream} />}
      {!view && !(cluster && stream) && !nowhere && <FleetPage />}
      {!view && nowhere && (
        <Empty title="There is no such page">
          <p>
            A stream's page is <code>/plugin/kstream/&lt;connection id&gt;/&lt;stream&gt;</code>.
          </p>
        </Empty>
      )}
    </section>
  );
}
