// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/path"
)

// Catalogs is the content that --catalog names, and what is asked about it.
type Catalogs struct {
	controllers.Catalogs
	// Explain is a bundle of which the report says why it is or is not chosen.
	Explain string
	// Path is a Subscription, SUBSCRIPTION or SUBSCRIPTION=BUNDLE, whose way the report has. With Across it may lead
	// through other channels. Asked is set once there is such a Subscription.
	Path          string
	Across, Asked bool
	// Packages are what was read, by CatalogSource.
	Packages map[types.NamespacedName][]resolution.Package
	// read says what was read, in the order of the flags.
	read []catalogRead
}

// catalogRead is what is in one catalog.
type catalogRead struct {
	Name     string `json:"name"`
	Packages int    `json:"packages"`
	Channels int    `json:"channels"`
	Bundles  int    `json:"bundles"`
	// Problems are what cannot be used of it, and why.
	Problems []string `json:"problems,omitempty"`
}

func (c catalogRead) print(b *strings.Builder) {
	b.WriteString("\n")
	row(b, "Catalog %s: %s, %s, %s", c.Name, count(c.Packages, "package"), count(c.Channels, "channel"), count(c.Bundles, "bundle"))
	const most = 5
	for _, problem := range c.Problems[:min(most, len(c.Problems))] {
		row(b, "  problem      %s", problem)
	}
	if n := len(c.Problems) - most; n > 0 {
		row(b, "  problem      and %d more (--output json names all)", n)
	}
}

// place turns a path into a catalog's content into words.
var place = strings.NewReplacer(`packages["`, "package ", `"].channels["`, ", channel ", `"].bundles["`, ", bundle ", `"]`, ": ")

// Set reads the catalog of one --catalog NAMESPACE/NAME=PATH.
func (c *Catalogs) Set(value string) error {
	loaded, err := c.Load(value)
	if err != nil {
		return err
	}
	read := catalogRead{Name: loaded.CatalogSource.String(), Packages: len(loaded.Packages)}
	for _, p := range loaded.Packages {
		read.Channels += len(p.Channels)
		read.Bundles += len(p.Bundles)
	}
	for _, problem := range loaded.Problems {
		if problem.Severity != olmcore.Info {
			read.Problems = append(read.Problems, place.Replace(problem.Path)+problem.Message)
		}
	}
	c.read = append(c.read, read)
	if c.Packages == nil {
		c.Packages = map[types.NamespacedName][]resolution.Package{}
	}
	c.Packages[loaded.CatalogSource] = loaded.Packages
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// notUnpacked is the Note of an answer whose bundles must be unpacked before there is an InstallPlan.
const notUnpacked = "the InstallPlan: its bundles are unpacked from their images first, which a dry run does not pull"

// answer is what a Subscription is told by the resolver.
type answer struct {
	Outcome resolution.Outcome `json:"outcome"`
	// Target is the version that the Subscription has then.
	Target string `json:"target,omitempty"`
	// Install are the versions that are installed for it, those that they depend on included, and their catalogs.
	Install []string `json:"install,omitempty"`
	// Note says why there is no InstallPlan to show.
	Note string `json:"note,omitempty"`
	// Reasons say why it gets nothing, or not its best, Help what to do about it.
	Reasons []string `json:"reasons,omitempty"`
	Help    []string `json:"help,omitempty"`
	// Explanation answers --explain.
	Explanation string `json:"explanation,omitempty"`
	// Path answers --path, or PathProblem says why not.
	Path        *path.Path `json:"path,omitempty"`
	PathProblem string     `json:"pathProblem,omitempty"`
}

// Input is what the answer for a namespace is computed from.
func (c *Catalogs) Input(ctx context.Context, reader olmcore.Reader, namespace string) (resolution.Input, error) {
	in, err := resolution.Gather(ctx, reader, namespace, c.GlobalNamespace, c.Content)
	in.Catalogs = c.withUnlisted(in.Catalogs)
	return in, err
}

// fingerprint says when an answer does not hold any more.
func (r *runner) fingerprint(ctx context.Context, reader olmcore.Reader, namespace string) (string, error) {
	in, err := r.catalogs.Input(ctx, reader, namespace)
	return in.Fingerprint(), err
}

// resolve answers for one namespace and files the answer under its Subscriptions.
func (r *runner) resolve(ctx context.Context, reader olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, err := r.catalogs.Input(ctx, reader, request.Namespace)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	result := resolution.Resolve(in)
	if input, ok := reader.(*observed); ok && input.guessing {
		return result.Resolution, nil
	}
	for _, s := range in.Subscriptions {
		found := r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		answer := answerFor(s.Name, result)
		if found.Resolution != nil {
			answer.Explanation = found.Resolution.Explanation
		}
		found.Resolution = answer
		r.catalogs.find(answer, in, s)
	}
	return result.Resolution, nil
}

// find answers --path for a Subscription, if it is the one.
func (c *Catalogs) find(a *answer, in resolution.Input, s *v1alpha1.Subscription) {
	name, target, _ := strings.Cut(c.Path, "=")
	if name != s.Name && name != s.Namespace+"/"+s.Name {
		return
	}
	c.Asked = true
	found, err := path.Find(path.Question{Input: in, Subscription: s.Name, Target: target, AcrossChannels: c.Across})
	if err != nil {
		a.PathProblem = err.Error()
		return
	}
	a.Path = &found
}

// explain answers --explain in each namespace of Subscriptions, whether they were
// resolved or not, at the Subscription that the answer is about, else at the first.
func (r *runner) explain(reader olmcore.Reader) error {
	if r.catalogs.Explain == "" {
		return nil
	}
	explained := map[string]resolution.Explanation{}
	for _, s := range r.subscriptions("") {
		x, known := explained[s.Namespace]
		if !known {
			in, err := r.catalogs.Input(r.ctx, reader, s.Namespace)
			if errors.Is(err, olmcore.ErrNotRead) {
				continue // what is missing is said elsewhere
			}
			if err != nil {
				return err
			}
			x = resolution.Explain(in, "", r.catalogs.Explain)
			if x.Subscription == "" {
				x.Subscription = s.Name
			}
			explained[s.Namespace] = x
		}
		if x.Subscription != s.Name {
			continue
		}
		found := r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		if found.Resolution == nil {
			found.Resolution = &answer{}
		}
		found.Resolution.Explanation = x.Summary
	}
	return nil
}

// Known says what is known of the catalogs of a namespace: nothing, when the input holds none of them. A catalog whose
// content was given counts as healthy. global is the namespace whose catalogs all namespaces see.
func (c *Catalogs) Known(ctx context.Context, reader olmcore.Reader, namespace, global string) (*subscription.Catalogs, error) {
	resolver := controllers.Catalogs{GlobalNamespace: global, Content: c.Content}
	known, err := resolver.Known(ctx, reader, namespace)
	if errors.Is(err, olmcore.ErrNotRead) {
		return nil, nil
	}
	if err != nil || len(known.Sources.Items) == 0 {
		return nil, err
	}
	known.Probes = map[types.NamespacedName]subscription.Probe{}
	for key := range c.Content {
		known.Probes[key] = subscription.Probe{Healthy: true}
	}
	return known, nil
}

// known is Known for the runner.
func (r *runner) known(ctx context.Context, reader olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	return r.catalogs.Known(ctx, reader, namespace, r.global)
}

// MostNamed returns the namespace whose catalogs most likely all namespaces see: the one that the Subscriptions of most
// namespaces name beside their own. It is empty if there is none. others are the other namespaces that Subscriptions
// name so, the likeliest first. A namespace counts once, however many Subscriptions it has.
func MostNamed(subs []*v1alpha1.Subscription) (namespace string, others []string) {
	namedBy := map[string]map[string]bool{}
	for _, s := range subs {
		if s.Spec == nil || s.Spec.CatalogSourceNamespace == "" || s.Spec.CatalogSourceNamespace == s.Namespace {
			continue
		}
		if namedBy[s.Spec.CatalogSourceNamespace] == nil {
			namedBy[s.Spec.CatalogSourceNamespace] = map[string]bool{}
		}
		namedBy[s.Spec.CatalogSourceNamespace][s.Namespace] = true
	}
	named := slices.SortedFunc(maps.Keys(namedBy), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(namedBy[b]), len(namedBy[a])), cmp.Compare(conventional[b], conventional[a]), strings.Compare(a, b))
	})
	if len(named) == 0 {
		return "", nil
	}
	return named[0], named[1:]
}

// conventional are the usual namespaces of global catalogs. The one with the higher number is preferred if as many
// namespaces name both.
var conventional = map[string]int{controllers.DefaultGlobalNamespace: 2, "openshift-marketplace": 1}

// withUnlisted adds the catalogs whose CatalogSource is not in the input.
func (c *Catalogs) withUnlisted(states []resolution.CatalogState) []resolution.CatalogState {
	for key, content := range c.Content {
		if !slices.ContainsFunc(states, func(s resolution.CatalogState) bool { return s.Key == key }) {
			states = append(states, resolution.CatalogState{Key: key, Content: content})
		}
	}
	return states
}

func answerFor(name string, result resolution.Result) *answer {
	a := &answer{Outcome: result.Outcome}
	for _, t := range result.Targets {
		if t.Subscription == name {
			a.Target = t.Target
		}
	}
	unknown := false
	for _, o := range installedFor(name, result.Operators) {
		line := fmt.Sprintf("%s from channel %s of %s", o.Name, o.Channel, o.Catalog)
		if !slices.Contains(o.For, name) {
			line += ", for " + strings.Join(o.RequiredBy, " and ")
		}
		a.Install = append(a.Install, line)
		unknown = unknown || len(o.Bundle.Objects) == 0 && o.Bundle.Invalid == ""
	}
	if unknown {
		a.Note = notUnpacked
	}
	for _, core := range result.CoresFor(name) {
		a.Reasons = append(a.Reasons, core.Summary)
		for _, remedy := range core.Remedies {
			a.Help = append(a.Help, remedy.Message)
		}
	}
	for _, h := range result.HeldBack {
		if h.Subscription == name {
			a.Reasons = append(a.Reasons, h.Summary)
			for _, remedy := range h.Remedies {
				a.Help = append(a.Help, remedy.Message)
			}
		}
	}
	return a
}

// installedFor returns what is installed for a Subscription, and what that depends on.
func installedFor(subscription string, operators []olmcore.Operator) []olmcore.Operator {
	var list []olmcore.Operator
	names := map[string]bool{}
	for again := true; again; {
		again = false
		for _, o := range operators {
			if !names[o.Name] && (slices.Contains(o.For, subscription) || slices.ContainsFunc(o.RequiredBy, func(by string) bool { return names[by] })) {
				names[o.Name], again = true, true
				list = append(list, o)
			}
		}
	}
	return list
}

// print writes the answer as lines of a table.
func (a *answer) print(b *strings.Builder) {
	if target := cmp.Or(a.Target, "nothing"); a.Outcome != "" {
		row(b, "  resolves     to %s", target)
	}
	for _, install := range a.Install {
		row(b, "  installs     %s", install)
	}
	if a.Note != "" {
		row(b, "  not shown    %s", a.Note)
	}
	for _, reason := range a.Reasons {
		row(b, "  because      %s", reason)
	}
	for _, help := range a.Help {
		row(b, "  would help   %s", help)
	}
	if a.Explanation != "" {
		row(b, "  explained    %s", a.Explanation)
	}
	if a.Path != nil {
		for line := range strings.Lines(a.Path.String()) {
			row(b, "  path         %s", line)
		}
	}
	if a.PathProblem != "" {
		row(b, "  path         %s", a.PathProblem)
	}
}
