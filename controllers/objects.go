// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/installplan"
	plansweep "github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

// catalogMemory is what is known of one CatalogSource.
type catalogMemory struct {
	address    string // what its gRPC client shall dial
	checkpoint *olmcore.Checkpoint
}

func (s *Set) catalog(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
	config := s.options.Catalog
	config.GlobalCatalogNamespace = cmp.Or(config.GlobalCatalogNamespace, s.options.GlobalNamespace)
	in, err := catalog.Gather(ctx, r, key, config)
	if err != nil {
		if olmcore.Classify(err) == olmcore.Gone {
			s.catalogs.drop(key)
		}
		return olmcore.Result{}, err
	}
	template, err := s.template(in.CatalogSource, now)
	if err != nil || changesSpec(template.Actions) {
		return template, err // the Pods follow the image that is served next
	}
	known := s.catalogs.get(key)
	in.Now, in.LastRun, in.Checkpoint = now, last, known.checkpoint
	in.Connection = s.connection(in, known.address)
	out, err := catalog.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if out.Connection.Verb != catalog.ConnectionKeep {
		s.ask(Catalog, key, out.Connection)
	}
	if out.Connection.Verb != catalog.ConnectionKeep && s.options.Connection != nil {
		known.address = out.Connection.Address
		in.Connection = s.connection(in, known.address)
		if out, err = catalog.Reconcile(in); err != nil {
			return olmcore.Result{}, err
		}
	}
	known.checkpoint = out.Checkpoint
	s.catalogs.set(key, known)
	s.namespaces.outdate(out.Notify.ResolveNamespaces...)
	return withTemplate(out.Result, template, key), nil
}

// template makes spec.image follow the image template of a CatalogSource.
func (s *Set) template(cs *v1alpha1.CatalogSource, now time.Time) (olmcore.Result, error) {
	if s.options.KubernetesVersion == "" || s.options.IgnoreImageTemplates {
		return olmcore.Result{}, nil
	}
	return catalog.Template(catalog.TemplateInput{Now: now, CatalogSource: cs, ServerVersion: s.options.KubernetesVersion})
}

func changesSpec(actions []olmcore.Action) bool {
	return slices.ContainsFunc(actions, func(a olmcore.Action) bool { _, ok := a.(olmcore.Update); return ok })
}

// withTemplate adds the status that a template asks for, unless the CatalogSource is
// written already: one object is written once.
func withTemplate(r, template olmcore.Result, key types.NamespacedName) olmcore.Result {
	written := slices.ContainsFunc(r.Actions, func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return target.GVK() == catalogKind && target.Namespace == key.Namespace && target.Name == key.Name
	})
	if written {
		return r
	}
	r.Actions = append(r.Actions, template.Actions...)
	r.Diagnostics = append(r.Diagnostics, template.Diagnostics...)
	return r
}

// planConfig is the configuration of plans, which shares the global namespace.
func (o *Options) planConfig() installplan.Config {
	config := o.InstallPlan
	config.GlobalNamespace = cmp.Or(config.GlobalNamespace, o.globalNamespace())
	return config
}

func (s *Set) connection(in catalog.Input, address string) *catalog.Connection {
	if s.options.Connection == nil {
		return nil
	}
	return s.options.Connection(in, address)
}

func (s *Set) installPlan(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
	in, err := installplan.Gather(ctx, r, key, s.options.planConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun = now, last
	out, err := installplan.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if s.options.Judge != nil && len(out.SchemaChanges) > 0 {
		judged, err := s.options.Judge(ctx, r, out.SchemaChanges)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.CustomResources = olmcore.Found(judged...)
		if out, err = installplan.Reconcile(in); err != nil {
			return olmcore.Result{}, err
		}
	}
	for _, lookup := range out.LostBundles {
		if _, err := s.unpack(ctx, r, key.Namespace, lookup, now, &out.Result); err != nil {
			return olmcore.Result{}, err
		}
	}
	return out.Result, nil
}

func (s *Set) sweep(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
	in, err := plansweep.Gather(ctx, r, key.Namespace, s.options.planConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	out, err := plansweep.Reconcile(in)
	return out.Result, err
}

func (s *Set) group(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
	in, err := operatorgroup.Gather(ctx, r, key)
	if err != nil {
		if olmcore.Classify(err) == olmcore.Gone {
			s.groups.drop(key)
		}
		return olmcore.Result{}, err
	}
	in.Now, in.Checkpoint = now, s.groups.get(key)
	out, err := operatorgroup.Reconcile(in)
	s.groups.set(key, out.Checkpoint)
	return out.Result, err
}

func (s *Set) csv(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
	in, err := csv.Gather(ctx, r, key, s.options.CSV)
	if err != nil {
		if olmcore.Classify(err) == olmcore.Gone {
			s.checkpoints.drop(key)
			s.judged.drop(key)
		}
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.KubernetesVersion = now, last, s.options.KubernetesVersion
	in.Checkpoint, in.Judged = s.checkpoints.get(key), s.judged.get(key)
	out, err := csv.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	for _, kind := range out.Operands {
		s.ask(CSV, key, kind)
	}
	s.checkpoints.set(key, out.Checkpoint)
	s.judged.set(key, out.Judged)
	return out.Result, nil
}

func (s *Set) sweepCSVs(ctx context.Context, r olmcore.Reader, _ types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
	in, err := sweep.Gather(ctx, r, s.options.CSV.Cleanup)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	out, err := sweep.Reconcile(in)
	return out.Result, err
}

func (s *Set) operator(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
	in, err := component.Gather(ctx, r, key.Name)
	if err != nil {
		return olmcore.Result{}, err
	}
	return component.Reconcile(in)
}
