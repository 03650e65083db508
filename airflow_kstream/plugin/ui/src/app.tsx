import { FleetPage } from "./fleet";
import { StreamPage } from "./stream";

export function App() {
  const [query] = ReactRouterDOM.useSearchParams();
  const cluster = query.get("cluster");
  const stream = query.get("stream");
  return <section className="ks">{cluster && stream ? <StreamPage cluster={cluster} stream={stream} /> : <FleetPage />}</section>;
}
