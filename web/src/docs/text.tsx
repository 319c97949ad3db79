/** @jsxImportSource preact */
// Texts of the document: paragraphs, code and strong words of Markdown. Everything else is shown as it is written.

import type { ComponentChildren } from "preact";

/** One line of Markdown. */
export function inline(text: string): ComponentChildren[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
    if (part.startsWith("**")) return <strong>{part.slice(2, -2)}</strong>;
    return part;
  });
}

/** A description. */
export function Text({ children }: { children: string | undefined }) {
  if (children === undefined || children === "") return null;
  return (
    <>
      {children.split(/\n{2,}/).map((paragraph) => (
        <p>{inline(paragraph)}</p>
      ))}
    </>
  );
}

/** A value, as JSON. */
export function Json({ value }: { value: unknown }) {
  return (
    // It can be wider than the screen: who has no pointer scrolls it with keys.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable
    <pre tabIndex={0}>
      <code>{JSON.stringify(value, null, 2)}</code>
    </pre>
  );
}
