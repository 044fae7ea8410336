// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// size is how large a world is.
type size struct {
	Each      int // Subscriptions of each tenant
	Global    int // operators that watch all namespaces, with copies in each
	Packages  int // that tenants choose from
	Published int // further packages of the catalog
	Versions  int // of each package
	Nodes     int
}

// full is the world of the goals, which grows to 400 tenants.
var full = size{Each: 25, Global: 15, Packages: 100, Published: 235, Versions: 16, Nodes: 20}

const (
	catalogNamespace = "olm"
	globalNamespace  = "operators"
)

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	catalog = types.NamespacedName{Namespace: catalogNamespace, Name: "community"}
)

func tenant(n int) string { return fmt.Sprintf("team-%03d", n) }

// world is a cluster and what it is about.
type world struct {
	size
	server   *server
	catalogs *controllers.Catalogs
	heads    map[string]int
	resolves int
	tenants  int // that have what they shall have
}

// pkg is the name of a package that tenants choose.
func (w *world) pkg(n int) string { return fmt.Sprintf("pkg%03d", n%w.Packages) }

func newWorld(s size) (*world, error) {
	w := &world{size: s, heads: map[string]int{}}
	w.catalogs = &controllers.Catalogs{Content: map[types.NamespacedName]*resolution.Catalog{}}
	w.catalogs.Resolved = func(resolution.Input, resolution.Result) { w.resolves++ }
	if err := w.publish(); err != nil {
		return nil, err
	}
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	// UIDs go on from the greatest: from here on none looks like another text.
	first := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: catalogNamespace, UID: "1000000"}}
	if err := c.Load(first); err != nil {
		return nil, err
	}
	w.server = newServer(c)
	w.server.created = w.unpack
	for n := range s.Nodes {
		if err := c.Node(nodeName(n)).Create(nil); err != nil {
			return nil, err
		}
	}
	return w, c.Create(
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: catalog.Namespace, Name: catalog.Name},
			Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:0",
				GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}},
		},
		&operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: globalNamespace, Name: "global"}},
	)
}

// publish makes the catalog's content anew.
func (w *world) publish() error {
	var packages []resolution.Package
	add := func(count int, global bool, name func(int) string) {
		for n := range count {
			packages = append(packages, catalogPackage(name(n), w.Versions-2+w.heads[name(n)], global))
		}
	}
	add(w.Packages, false, w.pkg)
	add(w.Global, true, globalPackage)
	add(w.Published, false, func(n int) string { return fmt.Sprintf("other%03d", n) })
	built, problems := resolution.Build(packages)
	if len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	w.catalogs.Content[catalog] = built
	return nil
}

func globalPackage(n int) string { return fmt.Sprintf("global%02d", n) }

// options are those of a manager of this world.
func (w *world) options(namespaces ...string) controllers.Options {
	o := controllers.Options{
		KubernetesVersion: "v1.36.2", Sweeps: true, Operators: false, Namespaces: namespaces, GlobalNamespace: catalogNamespace,
		InstallPlan: installplan.Config{OPMImage: "registry.example.com/opm:1", UtilImage: "registry.example.com/util:1"},
		Issuer:      olm.Issuer{},
	}
	w.catalogs.Serve(&o)
	return o
}

// unpack plays the Job that unpacks a bundle image.
func (w *world) unpack(o olmcore.Object) {
	job, is := o.(*batchv1.Job)
	if !is {
		return
	}
	name := job.Labels["operatorframework.io/bundle-unpack-ref"]
	err := fake.Edit(w.server.Cluster, job.Namespace, name, func(cm *corev1.ConfigMap) {
		if err := bundleOf(job).unpacked(cm); err != nil {
			w.server.failure = err
		}
	})
	if err == nil {
		err = w.server.Job(job.Namespace, job.Name).Finish("")
	}
	w.server.failure = errors.Join(w.server.failure, err)
}

// bundleOf reads from the Job which image it unpacks.
func bundleOf(job *batchv1.Job) (b bundle) {
	for _, c := range job.Spec.Template.Spec.InitContainers {
		if pkg, tag, ok := strings.Cut(strings.TrimPrefix(c.Image, "registry.example.com/"), "-bundle:"); ok {
			b.pkg, b.global = pkg, strings.HasPrefix(pkg, "global")
			fmt.Sscanf(tag, "1.%d.0", &b.version)
		}
	}
	return b
}

func subscriptionTo(namespace, pkg string) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg}, Spec: &v1alpha1.SubscriptionSpec{
		Package: pkg, Channel: "stable", CatalogSource: catalog.Name, CatalogSourceNamespace: catalog.Namespace, InstallPlanApproval: v1alpha1.ApprovalAutomatic,
	}}
}

// install makes the Subscriptions of the first tenants, as many as have all packages between them, and those to
// operators that watch all namespaces, and has a manager install what they lead to.
func (w *world) install(ctx context.Context) error {
	for n := range w.templates() {
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tenant(n), Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{tenant(n)}}}
		if err := w.server.Create(group); err != nil {
			return err
		}
	}
	for i := range max(w.Global, w.Each) { // one after the other, so that each has a plan of its own
		var subs []olmcore.Object
		if i < w.Global {
			subs = append(subs, subscriptionTo(globalNamespace, globalPackage(i)))
		}
		for n := range w.templates() {
			if i < w.Each {
				subs = append(subs, subscriptionTo(tenant(n), w.pkg(n*w.Each+i)))
			}
		}
		if err := w.server.Create(subs...); err != nil {
			return err
		}
		if err := w.runFor(ctx, 2*time.Minute); err != nil {
			return err
		}
	}
	return w.runFor(ctx, 10*time.Minute)
}

// templates is how many tenants have all packages between them.
func (w *world) templates() int { return (w.Packages + w.Each - 1) / w.Each }

// grow gives further tenants what the first ones have, until there are as many.
func (w *world) grow(ctx context.Context, tenants int) error {
	var all []*template
	for n := range w.templates() {
		t, err := w.templateOf(ctx, tenant(n))
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	for ; w.tenants < tenants; w.tenants++ {
		if w.tenants >= len(all) {
			if err := w.clone(all[w.tenants%len(all)], tenant(w.tenants)); err != nil {
				return err
			}
		}
		if err := w.others(ctx, tenant(w.tenants)); err != nil {
			return err
		}
	}
	return w.settle(ctx) // what the cluster makes of them is there before a manager starts
}

// settle lets the cluster and the managers go on until nothing changes at this instant.
func (w *world) settle(ctx context.Context) error {
	for again := true; again; {
		again = false
		if err := w.server.Settle(); err != nil {
			return err
		}
		w.server.view.Sync()
		for _, m := range w.server.managers {
			more, err := m.run(ctx)
			if err != nil {
				return err
			}
			again = again || more
		}
	}
	return w.server.failure
}

// runFor settles, at each instant for which a manager or the cluster waits.
func (w *world) runFor(ctx context.Context, d time.Duration) error {
	end := w.server.Now().Add(d)
	for {
		if err := w.settle(ctx); err != nil {
			return err
		}
		next, ok := w.server.NextDeadline()
		if !ok || next.After(end) {
			next = end
		}
		for _, m := range w.server.managers {
			if at := m.due(w.server.Now()); !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if !w.server.Now().Before(end) {
			return nil
		}
		w.server.Advance(next.Sub(w.server.Now()))
		for _, m := range w.server.managers {
			m.due(w.server.Now())
		}
	}
}
