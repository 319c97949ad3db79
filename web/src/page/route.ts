// Which screen is shown. It is in the fragment, so that the back button works; nothing secret ever stays there.

// CONTRIBUTING: add a screen, step 1
/** A screen. */
export type Route =
  | {
      readonly name: "inbox" | "history" | "expired" | "sessions" | "devices" | "pair" | "vouch" | "recover" | "silent";
    }
  | { readonly name: "request"; readonly id: string }
  | { readonly name: "session"; readonly id: string }
  | { readonly name: "batch"; readonly id: string };

const PLAIN = ["history", "expired", "sessions", "devices", "pair", "vouch", "recover", "silent"] as const;

/** The screen that a fragment names; the inbox if it names none. */
export function readRoute(hash: string): Route {
  const [name = "", id = ""] = hash.replace(/^#\/?/, "").split("/");
  const plain = PLAIN.find((known) => known === name);
  if (plain !== undefined) return { name: plain };
  if (name === "request" || name === "session" || name === "batch") {
    try {
      return { name, id: decodeURIComponent(id) };
    } catch {
      return { name: "inbox" };
    }
  }
  return { name: "inbox" };
}

/** The fragment of a screen. */
export function writeRoute(route: Route): string {
  return "id" in route
    ? `#/${route.name}/${encodeURIComponent(route.id)}`
    : route.name === "inbox"
      ? "#/"
      : `#/${route.name}`;
}

/** Shows a screen. The back button returns to the one before. */
export function go(route: Route): void {
  location.hash = writeRoute(route);
}

/** Shows a screen in place of this one: the back button does not return to it. */
export function goInPlace(route: Route): void {
  location.replace(writeRoute(route));
}

/** The link with which this page was opened, taken out of the address at once: it is a secret. */
export function takeLink(): string | undefined {
  const isLink = /\/(join|pair|connect)$/.test(location.pathname) && location.hash.length > 1;
  const link = isLink ? linkOf(location.href, location.hash) : undefined;
  if (location.pathname !== "/" || isLink) history.replaceState(null, "", `/${isLink ? "#/" : location.hash}`);
  return link;
}

/** The link in an address. A page on another origin than the gateway is opened with the whole link as its fragment. */
export function linkOf(address: string, hash: string): string {
  // Some programs write the second # of an address as %23.
  const inner = hash.slice(1).replace("%23", "#");
  return /^https?:\/\//.test(inner) ? inner : address;
}
