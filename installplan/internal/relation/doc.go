// SPDX-License-Identifier: Apache-2.0

// Package relation ties InstallPlans to the Subscriptions that they are made for:
// owner references, component labels, the annotations that remember both, whose
// approval a plan waits for, which plan took another's place, and the finalizer. All
// functions leave their arguments as they are unless they say otherwise.
package relation
