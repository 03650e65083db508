// What Airflow's page lends to the apps in it. React is a global of its types, too.
declare module "*.css" {
  const text: string;
  export default text;
}

interface Router {
  useLocation(): { pathname: string };
  useSearchParams(): [URLSearchParams, (next: Record<string, string>) => void];
  Link(props: { to: string; className?: string; title?: string; children: React.ReactNode }): React.ReactElement;
}

declare var ReactRouterDOM: Router;
declare var Streams: React.ComponentType | undefined;
declare var StreamsCard: React.ComponentType | undefined;
