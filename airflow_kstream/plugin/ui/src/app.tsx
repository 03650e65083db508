import { FilesPage } from "./files";
import { FleetPage } from "./fleet";
import { StreamPage } from "./stream";
import { Tabs } from "./tabs";
import { TicketsPage } from "./tickets";

export function App() {
  const [query] = ReactRouterDOM.useSearchParams();
  const cluster = query.get("cluster");
  const stream = query.get("stream");
  const view = query.get("view") ?? "";
  return (
    <section className="ks">
      <Tabs at={view} />
      {view === "files" && <FilesPage />}
      {view === "tickets" && <TicketsPage />}
      {!view && cluster && stream && <StreamPage key={`${cluster}/${stream}`} cluster={cluster} stream={stream} />}
      {!view && !(cluster && stream) && <FleetPage />}
    </section>
  );
}
