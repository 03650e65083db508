// Both apps come from one address, so Airflow evaluates this once and looks for each by its name.
import { App } from "./app";
import { Card } from "./card";
import { guarded } from "./guard";

globalThis.Streams = guarded(App);
globalThis.StreamsCard = guarded(Card);
