// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/audit"
)

// audit adds what the consistency check of each namespace finds and no controller said.
func (r *runner) audit() error {
	type fact struct { // what is said of a field
		reason, path string
		target       olmcore.Key
	}
	said := map[fact]bool{}
	for _, found := range r.results {
		for _, d := range found.Diagnostics {
			said[fact{d.Reason, d.Path, d.Target.Key()}] = true
		}
	}
	for _, key := range keysOf(r, v1alpha1.SubscriptionKind, controller.NamespaceKey) {
		in, err := subscription.Gather(r.ctx, r.reader, key.Namespace, subscription.Config{})
		if errors.Is(err, olmcore.ErrNotRead) {
			continue // its reconcile said so
		}
		if err != nil {
			return err
		}
		if in.Catalogs, err = r.known(r.ctx, r.reader, key.Namespace); err != nil {
			return err
		}
		in.Now, in.Live = r.cluster.Now(), true
		findings, err := audit.Find(in)
		if errors.Is(err, olmcore.ErrInvalidInput) {
			continue // its reconcile said so
		}
		if err != nil {
			return err
		}
		for _, f := range findings {
			if !said[fact{f.Reason, f.Path, f.Target.Key()}] {
				r.about(controller.Event{Controller: controllers.Subscription, Key: key}, f.Target).say(f.Diagnostic)
			}
		}
	}
	return r.assess()
}

// assess adds what the controllers of ClusterServiceVersions do not report at rest: why APIs have no ClusterRoles, and
// which webhooks, conversions and APIServices stay that a new version would not get.
func (r *runner) assess() error {
	for _, key := range keysOf(r, v1alpha1.ClusterServiceVersionKind, nil) {
		for _, of := range []struct {
			controller string
			assess     func(types.NamespacedName) ([]olmcore.Diagnostic, error)
		}{{controllers.Permissions, r.assessPermissions}, {controllers.CSV, r.assessVersion}} {
			said, err := of.assess(key)
			if errors.Is(err, olmcore.ErrNotRead) || errors.Is(err, olmcore.ErrInvalidInput) {
				continue // its reconcile said so
			}
			if err != nil {
				return err
			}
			for i := range said {
				if err := r.add(controller.Event{Controller: of.controller, Key: key, Diagnostic: &said[i]}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keysOf returns the keys of the objects of a kind of OLM in the cluster.
func keysOf(r *runner, kind string, of func(olmcore.Object) []types.NamespacedName) []types.NamespacedName {
	all := controller.Controller{Kinds: []schema.GroupVersionKind{v1alpha1.SchemeGroupVersion.WithKind(kind)}, KeysOf: of}
	keys, err := all.Keys(r.ctx, r.cluster)
	if err != nil {
		return nil // the cluster serves OLM's kinds
	}
	return keys
}

func (r *runner) assessPermissions(key types.NamespacedName) ([]olmcore.Diagnostic, error) {
	in, err := permissions.Gather(r.ctx, r.reader, key)
	if err != nil {
		return nil, err
	}
	in.Now = r.cluster.Now()
	return permissions.Assess(in)
}

func (r *runner) assessVersion(key types.NamespacedName) ([]olmcore.Diagnostic, error) {
	options := optionsOf(r)
	in, err := csv.Gather(r.ctx, r.reader, key, options.CSVConfig())
	if err != nil {
		return nil, err
	}
	in.Now = r.cluster.Now()
	assessed, err := csv.Assess(in)
	isOther := func(d olmcore.Diagnostic) bool {
		return !slices.Contains([]string{
			csv.ReasonWebhookRulesKept, csv.ReasonWebhookRulesNarrowed, csv.ReasonConversionKept, csv.ReasonAPIGroupShared,
		}, d.Reason)
	}
	return slices.DeleteFunc(assessed.Diagnostics, isOther), err
}
