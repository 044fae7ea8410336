// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Core is one reason why there is no solution: a set of rules that contradict each other.
type Core struct {
	// Subscriptions contains the names of the Subscriptions that the rules concern, sorted. If it is empty, the Core
	// affects all Subscriptions.
	Subscriptions []string
	// Rules contains the rules, sorted by text. Minimal means that every rule is necessary for the contradiction. Minimal
	// is false if the limit of steps was reached before this was known.
	Rules   []Rule
	Minimal bool
	// Error means that the reason is not a contradiction: either a catalog is unavailable, or the limit of steps was
	// reached.
	Error bool
	// Message is the message that OLM would write for these rules.
	Message string
	// Summary describes the same reason as Message in a readable sentence.
	Summary  string
	Remedies []Remedy
}

// CoresFor returns the Cores that affect a Subscription: the Cores that name the Subscription, and the Cores that name
// no Subscription.
func CoresFor(cores []Core, subscription string) []Core {
	return slices.DeleteFunc(slices.Clone(cores), func(c Core) bool {
		return len(c.Subscriptions) > 0 && !slices.Contains(c.Subscriptions, subscription)
	})
}

// Rule is one rule that a solution must satisfy.
type Rule struct {
	Kind RuleKind
	// Text is OLM's text for the rule.
	Text string
	// Subscription, Bundle, Package, Channel, Version and Catalog name the objects of the rule. Fields that do not
	// apply are empty.
	Subscription                      string
	Bundle, Package, Channel, Version string
	Catalog                           types.NamespacedName
	// Objects contains OLM's identifiers of the candidates, or of the entries that exclude each other.
	Objects []string
	// Need describes the requirement of a rule of kind BundleRequires. FailureMessage is the message that the bundle's
	// author wrote for this requirement.
	Need, FailureMessage string
}

// HeldBack explains why a Subscription did not get its best candidate.
type HeldBack struct {
	Subscription string
	// Candidate is the bundle that the Subscription did not get. It is empty if there is no candidate.
	Candidate string
	// Also contains the next candidates that the Subscription did not get for the same reason, in order of preference.
	Also []string
	Code HeldBackCode
	// Blocker is the name of the Subscription, ClusterServiceVersion, package or catalog that blocks the candidate. It may
	// also be a version range and its source, or a description of the missing requirement.
	Blocker string
	// Summary explains the reason in one sentence. Rules contains the rules that exclude Candidate.
	Summary string
	Rules   []Rule
	// Remedies contains changes after which the Subscription gets Candidate.
	Remedies []Remedy
}

// Remedy is a change after which the Subscriptions can be resolved. Usually, the resolution was repeated with the
// change and succeeded. If the change needs unknown content, such as another catalog, that content is assumed to exist.
// Three kinds of Remedies are not tested: to retry with fewer bundles or more steps, to restore a catalog, and to ask a
// publisher for an upgrade.
type Remedy struct {
	Code RemedyCode
	// Object is the name of the ClusterServiceVersion, Subscription, package or catalog to change, or a description of
	// the missing requirement.
	Object string
	// Message is the advice as one sentence.
	Message string
	// Changes contains the arguments with which WhatIf applies the change to the Input. It is empty if the change cannot
	// be expressed, for example because it needs an unknown catalog.
	Changes []Change
}

// Explanation explains why a bundle is or is not chosen.
type Explanation struct {
	Subscription, Bundle string
	// Chosen means that the bundle is part of the solution: it is installed already, or it will be installed.
	Chosen bool
	// Code is the kind of reason why the bundle is not chosen. It is empty if Chosen is true.
	Code HeldBackCode
	// Summary contains the explanation in one or more sentences.
	Summary string
	// Rules contains the rules that exclude the bundle. It is empty if the reason is not a rule.
	Rules []Rule
}
