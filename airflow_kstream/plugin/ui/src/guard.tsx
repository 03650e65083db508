import css from "./style.css";

function addStyle(): void {
  if (document.getElementById("kstream-style")) return;
  const style = document.createElement("style");
  style.id = "kstream-style";
  style.textContent = css;
  document.head.append(style);
}

/** Keeps a defect of these pages from taking Airflow's own page down: they run in it. */
class Guard extends React.Component<{ children: React.ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <section className="ks">
        <div className="ks-note ks-bad" role="alert">
          <h2>This page has a defect</h2>
          <p>{String(this.state.error)}</p>
          <p>
            Streams are watched regardless. <code>kstream streams status</code> tells the same from a terminal.
          </p>
          <button type="button" className="ks-button" onClick={() => this.setState({ error: null })}>
            Try again
          </button>
        </div>
      </section>
    );
  }
}

export function guarded(Inner: React.ComponentType): React.ComponentType {
  addStyle();
  return () => (
    <Guard>
      <Inner />
    </Guard>
  );
}
