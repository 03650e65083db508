import { page, useAnswer } from "./api";
import { Badge } from "./parts";
import { URGENCIES } from "./states";
import type { Fleet } from "./stored";

/** What stands on Airflow's first page. */
export function Card() {
  const { data, error } = useAnswer<Fleet>("kstream/api/fleet");
  const { Link } = ReactRouterDOM;
  return (
    <section className="ks ks-card" aria-label="Streams">
      <h3>
        <Link to={page()}>Streams</Link>
      </h3>
      {error && !data && <p className="ks-muted">Not readable now.</p>}
      {data && data.streams.length === 0 && <p className="ks-muted">No stream that you may read is stored yet.</p>}
      {data && data.streams.length > 0 && (
        <ul>
          {URGENCIES.map(([name, tone]) => {
            const many = data.streams.filter((row) => row.urgency === name).length;
            return many ? (
              <li key={name}>
                <Link to={page({ show: name })}>
                  <strong>{many}</strong> <Badge tone={tone}>{name}</Badge>
                </Link>
              </li>
            ) : null;
          })}
        </ul>
      )}
    </section>
  );
}
