// The texts by which a person is notified at an address of their own.

/** They are part of `texts`. */
export const webhook = {
  hookAdd: "Add a webhook",
  hookAddNote: "For ntfy, Slack or any address",
  hookHelp: "A webhook only says that something waits, and links to this page. Nobody can answer through it.",
  hookName: "Name",
  hookAddress: "Address",
  hookFormat: "What is sent",
  hookFormats: {
    signed: { name: "Signed message", help: "JSON, signed as Standard Webhooks says. For your own program." },
    plain: { name: "Plain text", help: "For ntfy." },
    slack: { name: "Slack message", help: "For an incoming webhook of Slack." },
  },
  hookGo: "Add",
  hookGoing: "Adding…",

  // Set again
  hookChange: "Change address or secret",
  hookChangeHelp:
    "Enter the address again: the relay keeps it, but doesn't show it. Saving makes a new secret; the old one stays valid for 24 hours.",
  hookSave: "Save",
  hookSaving: "Saving…",

  // Done
  hookAdded: (name: string) => `${name} is added.`,
  hookSaved: (name: string) => `${name} is saved.`,
  hookSecret: "Secret",
  hookSecretHelp: "With this secret your program checks that a message came from this relay. It is shown only now.",
  hookSecretOld: "Messages are also signed with the old secret for 24 hours, so you can change it without a gap.",
  hookDone: "Done",

  // Removed
  hookRemove: "Remove",
  hookRemoveQuestion: (name: string) => `Remove ${name}? Nothing more will be sent there.`,

  // What went wrong
  hookNoAddress: "Enter a whole address, such as https://ntfy.sh/my-topic.",
  hookNotAllowed:
    "This relay may not call that address. It must be public and begin with https://. For one in a private network, ask whoever runs the relay to add it to allowed_networks under [notifications].",
  hookTooMany: "You are notified in sixteen ways already, which is the limit. Stop or remove one first.",

  hookFailing: {
    refused: {
      why: "The address refuses the messages.",
      next: "Check what it expects and whether its secret is right; then change it here.",
    },
    gone: {
      why: "There is nothing at this address any more.",
      next: "Nothing more is sent. Enter the new address, or remove it.",
    },
    unreachable: {
      why: "The relay can't reach this address.",
      next: "Check that it is right and that its server runs. The relay keeps trying.",
    },
    timedOut: {
      why: "The address doesn't answer in time.",
      next: "The relay keeps trying. Check the server there if it lasts.",
    },
    busy: {
      why: "The address says that it has too much to do.",
      next: "The relay waits and tries again. You need not do anything.",
    },
    notAllowed: {
      why: "The relay may not call this address: it is in a private network.",
      next: "Ask whoever runs the relay to add it to allowed_networks under [notifications], or use a public address.",
    },
    other: {
      why: "The relay can't deliver to this address.",
      next: "Enter the address again. If that doesn't help, ask whoever runs the relay.",
    },
  },

  // Where an app takes what is sent
  appFailing: {
    refused: {
      why: "The push service refuses messages from this relay.",
      next: "Have the app on that device register again.",
    },
    gone: {
      why: "The app on that device has left its push service.",
      next: "Have it register again. If you no longer use it, stop notifying it.",
    },
  },
} as const;
