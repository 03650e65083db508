import { page, useAnswer, useNow } from "./api";
import { AnswerPage, Badge, Empty, type Tone } from "./parts";
import type { Keytab, Ticket, Tickets } from "./stored";
import { ago, away, count, duration, moment, sentence } from "./words";

/** The tickets that are kept fresh, and the keytabs. */
export function TicketsPage() {
  const answer = useAnswer<Tickets>("kstream/api/tickets");
  const now = useNow(answer.ahead);
  return (
    <AnswerPage title="Tickets and keytabs" lead="As the last renewal and the last check of each found them." what="tickets" answer={answer}>
      {({ clusters }) =>
        clusters.length === 0 ? (
          <NoTickets />
        ) : (
          clusters.map(({ cluster, tickets, keytabs }) => (
            <React.Fragment key={cluster}>
              <Listed title="Tickets" cluster={cluster} columns={["Principal", "State", "Life left", "Renewals"]}>
                {tickets.map((ticket) => (
                  <TicketRow key={ticket.principal} ticket={ticket} now={now} />
                ))}
              </Listed>
              <Listed title="Keytabs" cluster={cluster} columns={["Keytab", "Finding", "Key version", "Streams that it ends"]}>
                {keytabs.map((keytab) => (
                  <KeytabRow key={`${keytab.principal} ${keytab.keytab}`} keytab={keytab} cluster={cluster} now={now} />
                ))}
              </Listed>
            </React.Fragment>
          ))
        )
      }
    </AnswerPage>
  );
}

function Listed({ title, cluster, columns, children }: { title: string; cluster: string; columns: string[]; children: React.ReactNode[] }) {
  if (!children.length) return null;
  return (
    <section className="ks-panel" aria-label={`${title} for ${cluster}`}>
      <div className="ks-panel-head">
        <h2>
          {title} <span className="ks-muted ks-thin">for {cluster}</span>
        </h2>
      </div>
      <table className="ks-plain ks-stack">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function NoTickets() {
  return (
    <Empty title="No ticket was renewed, and no keytab checked, by a DAG that you may read">
      <ol>
        <li>
          Add a file <code>&lt;connection id&gt;.yaml</code> to <code>[kstream] tickets_folder</code>; it may be empty;
        </li>
        <li>
          unpause its DAGs <code>tickets-&lt;connection id&gt;</code> and <code>keytabs-&lt;connection id&gt;</code>.
        </li>
      </ol>
      <p>
        <code>kstream tickets list</code> and <code>kstream tickets check</code> ask at once.
      </p>
    </Empty>
  );
}

const STATES: Record<string, [string, Tone]> = {
  fresh: ["fresh", "good"],
  due: ["due for renewal", "busy"],
  urgent: ["about to expire", "bad"],
  expired: ["expired", "bad"],
  missing: ["no ticket", "bad"],
};

function TicketRow({ ticket, now }: { ticket: Ticket; now: number }) {
  const [words, tone] = ticketState(ticket, now);
  const left = ticket.expiry ? (Date.parse(ticket.expiry) - now) / 1000 : null;
  const whole = ticket.expiry ? Math.max(1, (Date.parse(ticket.expiry) - Date.parse(ticket.at)) / 1000) : 1;
  return (
    <tr>
      <td>
        <b>{ticket.principal}</b>
      </td>
      <td>
        <Badge tone={tone}>{words}</Badge>
      </td>
      <td data-label="Life left">
        {left !== null && (
          <>
            <progress className={`ks-left ks-left-${tone}`} max={1} value={Math.max(0, Math.min(1, left / whole))} aria-label={`${ticket.principal}: ${duration(left)} left`} />
            <small title={moment(ticket.expiry)}>
              {left > 0 ? `ends ${away(ticket.expiry, now)}` : `ended ${away(ticket.expiry, now)}`}
              {ticket.renew_until && <span className="ks-muted"> · renewable until {moment(ticket.renew_until)}</span>}
            </small>
          </>
        )}
      </td>
      <td className="ks-wide" data-label="Renewals">
        {ticket.failures > 0 ? (
          <>
            <b className="ks-late">{count(ticket.failures, "failure")} in a row</b>
            {ticket.failing_since && <span className="ks-muted"> since {away(ticket.failing_since, now).replace(" ago", "")}</span>}
            <small>{sentence(ticket.error)}</small>
          </>
        ) : (
          <span className="ks-muted" title={moment(ticket.at)}>
            {ticket.outcome} {ago(ticket.at, now)}
          </span>
        )}
      </td>
    </tr>
  );
}

function ticketState(ticket: Ticket, now: number): [string, Tone] {
  if (ticket.expiry && Date.parse(ticket.expiry) <= now) return STATES.expired!;
  return STATES[ticket.state] ?? [ticket.state, "calm"];
}

const SEVERITIES: Record<string, Tone> = { error: "bad", warning: "warn", note: "calm" };

function KeytabRow({ keytab, cluster, now }: { keytab: Keytab; cluster: string; now: number }) {
  const { Link } = ReactRouterDOM;
  const rotated = keytab.kvno !== null && keytab.kdc_kvno !== null && keytab.kvno !== keytab.kdc_kvno;
  return (
    <tr>
      <td>
        <b>{keytab.principal}</b>
        <small className="ks-muted ks-path">{keytab.keytab}</small>
        <small className="ks-muted" title={moment(keytab.at)}>
          checked {ago(keytab.at, now)}
        </small>
      </td>
      <td className="ks-wide">
        {keytab.findings.length === 0 && <Badge tone="good">works</Badge>}
        {keytab.findings.map((finding) => (
          <div key={finding.kind + finding.words} className="ks-finding">
            <Badge tone={SEVERITIES[finding.severity] ?? "calm"}>{finding.severity}</Badge> {sentence(finding.words)}
            {finding.remedy && <small className="ks-muted">What now: {finding.remedy}</small>}
          </div>
        ))}
      </td>
      <td data-label="Key version">
        <span className={rotated ? "ks-late" : undefined}>on disk {keytab.kvno ?? "not known"}</span>
        <small className={rotated ? "ks-late" : "ks-muted"}>at the KDC {keytab.kdc_kvno ?? "not known"}</small>
      </td>
      <td data-label="Streams that it ends">
        {keytab.streams.length === 0 && <span className="ks-muted">none</span>}
        {keytab.streams.map((each) => (
          <div key={each.stream}>
            <Link to={page({ cluster, stream: each.stream })}>{each.stream}</Link>
            <small className={each.dies_from ? "ks-late" : "ks-muted"}>{each.dies_from ? `from ${moment(each.dies_from)} on` : "not before a restart"}</small>
          </div>
        ))}
      </td>
    </tr>
  );
}
