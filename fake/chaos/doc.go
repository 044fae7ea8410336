// SPDX-License-Identifier: Apache-2.0

// Package chaos lets a whole world with OLM in it live through what goes wrong: nodes fail, managers restart, crash,
// read stale caches and have wrong clocks, writes fail, users delete and spoil, a tenant attacks, catalogs are renewed
// and certificates end. What must never be is looked for after every step, and once all heals the world must come to
// rest with what is wanted installed. It is where a controller of yours finds out what its users' clusters will do to
// it.
//
//	h := chaos.New(chaos.Options{
//		Setting:     chaos.Setting{Approves: true, Deletes: true},
//		Objects:     myCRDs,
//		Controllers: func() []controller.Controller { return []controller.Controller{mine()} }, // anew for each process
//		AfterAction: func(e controller.Event) error { return allowed(e) },
//	})
//	steps := chaos.Steps(h.Options)
//	for range 1000 {
//		if err := h.Do(chaos.Draw(steps, random), random); err != nil { ... }
//	}
//	err := h.Heal()
//
// A [History] draws no random number: each [Step] asks the caller's [Choices], so that it can be repeated and shrunk.
// Package fake/gen/walk makes the choices with rapid.
//
// # The world
//
// Two nodes, one catalog with six packages, of which three serve webhooks, conversions or APIs and one needs another,
// and the four namespaces of [Tenants], whose users subscribe to them. Two managers run all of OLM's controllers and
// yours, each with its own View, queue, memory and clock. A namespace of an attacker, and one of objects that nothing
// has a reason to touch.
//
// # Races
//
// In a history with Races in its [Setting], versions are published and withdrawn while InstallPlans run, writes are
// refused for minutes, the cache of one kind stands still, and the clocks of the managers differ by up to
// [ClockTolerance]. The world then also requires that InstallPlans run in their order, that nothing goes back to an
// older version, and that in the end each ClusterServiceVersion has a Subscription. With Separates the managers make a
// plan for each set of Subscriptions that depend on each other. An administrator changes the option SeparatePlans, and
// for a while the managers run with different values.
package chaos
