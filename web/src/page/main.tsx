// Starts the page.

import { render } from "preact";

import { App } from "./app.ts";
import { Attention } from "./attention.ts";
import { ignoreRepeats } from "./guard.ts";
import { Page } from "./page.tsx";
import { takeLink } from "./route.ts";
import { followTaps, keepOffline } from "./worker.ts";

const app = new App();
new Attention(app);
const place = document.getElementById("page");
const link = takeLink();
ignoreRepeats();
if (place !== null) render(<Page app={app} />, place);
followTaps();
void app.start(link);
keepOffline();
