// The texts by which a person sets up notifications, and learns why none came.

/** They are part of `texts`. */
export const notify = {
  noticesTitle: "Notifications",
  notifyThis: (kind: string) => `Notify this ${kind}`,
  notifying: "Asking…",
  notifyAgain: "Switch on again",
  checkAgain: "Check again",
  notifyOff: (kind: string) => `This ${kind} is silent while the page is closed`,
  notifyHelp:
    "A notification can tell you that a request is waiting, even when the page is closed. It doesn't say what is asked.",
  notifyOffer: "Be told when something waits",
  notNow: "Not now",

  // What stands in the way
  notifyBlocked: "Your browser blocks notifications from this page",
  notifyBlockedNext: {
    apple: "Open Settings, Notifications, Countersign, and allow notifications. Then come back here.",
    phone: "Touch and hold the app's icon, tap App info, Notifications, and allow them. Then come back here.",
    tab: "Tap the icon beside the address, then Permissions or Site settings, and allow notifications. Then come back here.",
  },
  notifyDismissed: "You weren't asked, or closed the question. Try again, and choose Allow.",
  notifyStopped: (kind: string) => `Notifications on this ${kind} have stopped`,
  notifyStoppedNext: "Your browser has dropped them, as some do after a while. Switch them on again.",
  notifyHomeScreen: "On an iPhone or iPad, only the app on the home screen can notify you",
  notifyHomeScreenNext:
    "Tap Share, then “Add to Home Screen”. Open Countersign from there, join again, and switch notifications on. It needs iOS 16.4 or later.",
  notifyUnsupported: "This browser can't notify you while the page is closed",
  notifyUnsupportedNext:
    "Open the page in a current Chrome, Edge, Firefox or Safari, over https and not in a private window.",
  notifyNoRelay: "This relay sends no notifications",
  notifyNoRelayNext: "Keep the page open, or ask whoever runs the relay to upgrade it.",
  relayUnreachable: "The relay can't be reached. Check the connection, and try again.",
  notifyUnread: "The relay didn't say how you are notified",
  notifyUnreadNext: "Check the connection, and try again.",
  notifyNoService:
    "This browser couldn't reach its push service. Check the connection; a blocker, a firewall or a setting may forbid it.",
  notifyNotAllowed: "This relay may not call the push service of this browser. Ask whoever runs it to allow it.",
  notifyTooMany: "You have sixteen of these already. Stop one that you don't use.",
  notifyRepaired: "Notifications had stopped on this device. They work again.",
  barFailing: (kind: string) => `This ${kind} isn't being notified.`,
  barFix: "Fix it",

  // One way to be notified
  thisOne: (kind: string) => `this ${kind}`,
  kindOf: { unifiedPush: "UnifiedPush", webhook: "webhook" },
  lastShown: "Last shown",
  lastTaken: "Last taken",
  sentNotShown: "Sent, not shown yet",
  nothingSent: "Nothing sent yet",
  notWorking: "Not working",
  factAccepted: (host: string) => `Taken by ${host}`,
  factDisplayed: "Shown on the device",
  never: "Never",
  failing: {
    refused: {
      why: "The push service refuses messages from this relay.",
      next: "Switch notifications off and on again on that device. If that doesn't help, tell whoever runs the relay: its keys or its contact address may be wrong.",
    },
    gone: {
      why: "The device has left its push service: the app was removed, its data was cleared, or it wasn't used for long.",
      next: "Open Countersign on that device; that repairs it. If you no longer use it, stop notifying it.",
    },
    unreachable: {
      why: "The relay can't reach the push service.",
      next: "Tell whoever runs the relay: it needs a way out to that address, perhaps through a proxy.",
    },
    timedOut: {
      why: "The push service doesn't answer in time.",
      next: "The relay keeps trying. If it lasts for more than an hour, tell whoever runs the relay.",
    },
    busy: {
      why: "The push service says that there is too much to send.",
      next: "The relay waits and tries again. You need not do anything.",
    },
    notAllowed: {
      why: "The relay may not call this address.",
      next: "Ask whoever runs the relay to allow it, or use another address.",
    },
    other: {
      why: "The relay can't deliver notifications.",
      next: "Ask whoever runs the relay.",
    },
  },
  failingSince: (time: string) => `Failing since ${time}.`,
  sendTest: "Send a test",
  sendingTest: "Sending…",
  testSent: "Sent. It should appear in a few seconds.",
  testShown: "Shown. Notifications work here.",
  testTaken: "The service took it.",
  testFailed: "The test didn't get through. See above.",
  testUnseen: "The push service took it, but the device hasn't shown it.",
  stopNotifying: "Stop notifying",
  silentLink: "If nothing appears",

  // What it shows
  showRequests: "Show what is asked in notifications",
  showRequestsHelp:
    "This device opens the request and shows who asks and what for, perhaps on the lock screen. You can reject right there; approving always needs the page.",

  // Tests by themselves
  weeklyTest: "Test every week",
  weeklyTestHelp: "Sends you a visible test every week, so you know that your phone still rings.",

  // Quiet hours
  quietTitle: "Quiet hours",
  quietNone: "None",
  quietRange: (from: string, to: string) => `${from} to ${to}`,
  quietHelp:
    "In these hours you are notified only of what a machine marks as loud. Of the rest you are notified when they end, if it still waits. They count for all your devices.",
  quietFrom: "From",
  quietTo: "To",
  quietSave: "Save",
  quietEnd: "No quiet hours",
  quietSame: "Choose two different times.",

  // While a tab is open
  tabNotices: "Allow notifications while a tab is open",
  tabNoticesHelp: "While this page is open in the background, it can still tell you that a request is waiting.",

  // Silence
  silentTitle: "When a device stays silent",
  silentText: "Most common cause first. After each step, send a test.",
  silentSteps: [
    ["Is it switched on here?", "Devices, Notifications lists every device that is notified, and why one isn't."],
    [
      "May this page notify you?",
      "Look in the settings of the phone (Apps or Notifications) for Countersign, or for your browser if you use a tab.",
    ],
    ["Is the phone in Do Not Disturb or Focus?", "Allow Countersign there. Also look at the quiet hours here."],
    [
      "Does the phone save battery?",
      "On Android, let Countersign or your browser run in the background: App info, Battery, Unrestricted.",
    ],
    [
      "Is it an iPhone or iPad?",
      "Only the app on the home screen is notified. If you removed it, add it again and join again.",
    ],
    ["Has the device been offline?", "It catches up when it is online, unless the request has ended by then."],
    [
      "Did someone answer at once?",
      "What is answered at the machine within 20 seconds, or elsewhere before its turn comes, isn't sent to phones.",
    ],
  ],
} as const;
