// What kind of device this is, as far as a page can know it.

import { texts } from "../texts.ts";

/** What people call it. */
export type DeviceKind = "phone" | "tablet" | "browser";

export function deviceKind(): DeviceKind {
  if (/iPhone|Android.*Mobile/.test(navigator.userAgent)) return "phone";
  return /iPad|Android/.test(navigator.userAgent) ? "tablet" : "browser";
}

/** What a device is called that nobody has named: its person's, by what it is. */
export function deviceName(id: string): string {
  return texts.newDeviceName(id, deviceKind());
}

/** Whether this is an iPhone or iPad. */
export function isApple(): boolean {
  return (
    /iPhone|iPad|iPod/.test(navigator.userAgent) ||
    (navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1)
  );
}

/** Whether the page is installed as an app. */
export function isInstalled(): boolean {
  return (
    window.matchMedia("(display-mode: standalone)").matches ||
    ("standalone" in navigator && navigator.standalone === true)
  );
}

/** Whether this is a tab on an iPhone or iPad, whose storage is cleared after a week. */
export function isTabOfApple(): boolean {
  return isApple() && !isInstalled();
}
