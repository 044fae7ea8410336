// SPDX-License-Identifier: Apache-2.0

// Package rollback says how to go back to an earlier version of an operator, and whether that can be done without
// losing anything: after an upgrade that failed, one that failed after its CustomResourceDefinitions had changed, or
// one that succeeded and is regretted. It writes nothing.
//
// [Of] returns the steps in order. Each is an action or a wait; only the first action is exact for what was observed,
// those after it are how they will look. So whoever carries a way out asks again after each step, until nothing is
// left:
//
//	for {
//		advice, err := rollback.Advise(ctx, in) // of what is observed now; in.To is advice.To of the first time
//		if err != nil || advice.Refused != "" || len(advice.Steps) == 0 { break }
//		if a := advice.Steps[0].Action; a != nil { err = executor.Do(ctx, a) } else { wait() }
//	}
//
// It may be stopped anywhere and gone on with anywhere, by anybody: what was done is seen in the cluster.
//
// The way leads through what OLM does by itself. The Subscription gets manual approval, so that the newer version does
// not come again; the newer version is deleted, with its custom resources kept; the version before, where it waits
// still, takes over again; where it is gone, the Subscription forgets what it had and starts from there, and its
// InstallPlan is approved.The rollback is simulated first, as in package
// preview. It is offered only if the simulation ends with the older version installed.
package rollback
