import { FleetPage } from "./fleet";

export function App() {
  return (
    <section className="ks">
      <FleetPage />
    </section>
  );
}
