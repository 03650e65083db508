// Builds ../static/kstream.js, which is committed: who installs the package needs no Node. Airflow's page has React and
// its router, so the bundle has neither.
import { build } from "esbuild";

await build({
  entryPoints: ["src/main.tsx"],
  outfile: process.argv[2] ?? "../static/kstream.js",
  bundle: true,
  format: "iife",
  target: "es2022",
  jsx: "transform",
  loader: { ".css": "text" },
  minify: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});
