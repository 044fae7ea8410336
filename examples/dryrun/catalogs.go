// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// catalogs is the content that --catalog names.
type catalogs struct {
	content map[types.NamespacedName]*resolution.Catalog
	// global is the namespace whose catalogs all namespaces see: that of the first.
	global string
	// explain is the bundle of --explain.
	explain string
}

// answer is what a Subscription is told by the resolver.
type answer struct {
	Outcome resolution.Outcome `json:"outcome"`
	// Target is the version that the Subscription has then.
	Target string `json:"target,omitempty"`
	// Install are the versions that the namespace gets with it, those for
	// dependencies included, and their catalogs.
	Install []string `json:"install,omitempty"`
	// Reasons say why it gets nothing, or not its best.
	Reasons []string `json:"reasons,omitempty"`
	// Explanation answers --explain.
	Explanation string `json:"explanation,omitempty"`
}

// add reads the catalog of one --catalog NAMESPACE/NAME=PATH.
func (c *catalogs) add(value string) error {
	name, path, ok := strings.Cut(value, "=")
	namespace, name, named := strings.Cut(name, "/")
	if !ok || !named || namespace == "" || name == "" || path == "" {
		return fmt.Errorf("%q is not NAMESPACE/NAME=PATH", value)
	}
	packages, err := readCatalog(path)
	if err != nil {
		return err
	}
	built, _ := resolution.Build(packages)
	if c.content == nil {
		c.content = map[types.NamespacedName]*resolution.Catalog{}
	}
	c.content[types.NamespacedName{Namespace: namespace, Name: name}] = built
	c.global = cmp.Or(c.global, namespace)
	return nil
}

func readCatalog(path string) ([]resolution.Package, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		packages, _, err := fbc.Load(os.DirFS(path), ".", fbc.Options{})
		return packages, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packages, _, err := fbc.Read(path, f, fbc.Options{})
	return packages, err
}

// resolve answers for one namespace and files the answer under its
// Subscriptions.
func (r *runner) resolve(ctx context.Context, reader olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, err := resolution.Gather(ctx, reader, request.Namespace, r.catalogs.global, r.catalogs.content)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	in.Catalogs = r.catalogs.withUnlisted(in.Catalogs)
	result := resolution.Resolve(in)
	for _, s := range in.Subscriptions {
		found := r.result(v1alpha1.SubscriptionKind, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		found.Resolution = answerFor(s.Name, result)
		if r.catalogs.explain != "" {
			found.Resolution.Explanation = resolution.Explain(in, s.Name, r.catalogs.explain).Summary
		}
	}
	return result.Resolution, nil
}

// known says what is known of the catalogs of a namespace: nothing, when the input
// holds none of them. A catalog whose content was given counts as healthy.
func (r *runner) known(ctx context.Context, reader olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	resolver := controllers.Catalogs{GlobalNamespace: r.globalNamespace(), Content: r.catalogs.content}
	known, err := resolver.Known(ctx, reader, namespace)
	if err != nil || len(known.Sources) == 0 {
		return nil, err
	}
	known.Probes = map[types.NamespacedName]subscription.Probe{}
	for key := range r.catalogs.content {
		known.Probes[key] = subscription.Probe{Healthy: true}
	}
	return known, nil
}

// globalNamespace is the namespace whose catalogs all namespaces see: that of the
// first --catalog, else the one that most Subscriptions name beside their own.
func (r *runner) globalNamespace() string {
	if r.catalogs.global != "" {
		return r.catalogs.global
	}
	count := map[string]int{}
	for _, s := range r.subscriptions("") {
		if s.Spec != nil && s.Spec.CatalogSourceNamespace != s.Namespace {
			count[s.Spec.CatalogSourceNamespace]++
		}
	}
	most := ""
	for _, namespace := range slices.Sorted(maps.Keys(count)) {
		if count[namespace] > count[most] {
			most = namespace
		}
	}
	return most
}

// withUnlisted adds the catalogs whose CatalogSource is not in the input.
func (c *catalogs) withUnlisted(states []resolution.CatalogState) []resolution.CatalogState {
	for key, content := range c.content {
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
	for _, o := range result.Operators {
		if a.Target == "" {
			break
		}
		a.Install = append(a.Install, fmt.Sprintf("%s from %s", o.Name, o.Catalog))
	}
	for _, core := range result.CoresFor(name) {
		a.Reasons = append(a.Reasons, core.Summary)
		for _, remedy := range core.Remedies {
			a.Reasons = append(a.Reasons, "what would help: "+remedy.Message)
		}
	}
	for _, h := range result.HeldBack {
		if h.Subscription == name {
			a.Reasons = append(a.Reasons, h.Summary)
		}
	}
	return a
}

// print writes the answer as lines of a table.
func (a *answer) print(b *strings.Builder) {
	target := a.Target
	if target == "" {
		target = "nothing"
	}
	fmt.Fprintf(b, "  resolves     to %s\n", target)
	for _, install := range a.Install {
		fmt.Fprintf(b, "  installs     %s\n", install)
	}
	for _, reason := range a.Reasons {
		fmt.Fprintf(b, "  because      %s\n", reason)
	}
	if a.Explanation != "" {
		fmt.Fprintf(b, "  explained    %s\n", a.Explanation)
	}
}
