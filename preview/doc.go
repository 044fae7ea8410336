// SPDX-License-Identifier: Apache-2.0

// Package preview says what approving an InstallPlan would do, before anybody approves it: which objects are created,
// changed and deleted, what the operator may do from then on, what becomes of CustomResourceDefinitions and their
// custom resources, which Deployments restart, what stands in the way, and whether there is a way back.
//
// Of lets the observed cluster go on twice in memory, as the controllers of package controllers would have it, before
// and after the approval, and compares what comes of it: no rule is written a second time, so what is foreseen is what
// the library does. It writes nothing, asks no clock, and gives the same answer for the same Input. [Gather] reads the
// Input, [Run] does both, and has custom resources judged:
//
//	p, err := preview.Run(ctx, reader, types.NamespacedName{Namespace: "ops", Name: "install-abcde"}, time.Now(), options)
//	if len(p.Blocked) == 0 && len(p.Permissions.Added) == 0 { ... }
//
// What it takes for granted: nodes have what Pods ask of them, images can be pulled and Deployments become available,
// what other controllers and users do meanwhile does not matter, admission webhooks let everything pass, and the
// ServiceAccount of an OperatorGroup may do what the plan does.
package preview
