// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
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
	for _, key := range fake.NamespacesOf(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind))(r.cluster) {
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
				r.about(fake.Event{Controller: controllers.Subscription, Key: key}, f.Target).say(f.Diagnostic)
			}
		}
	}
	return r.assess()
}

// assess adds why APIs have no ClusterRoles, which the controller does not say at rest.
func (r *runner) assess() error {
	for _, key := range fake.KeysOf(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind))(r.cluster) {
		in, err := permissions.Gather(r.ctx, r.reader, key)
		if errors.Is(err, olmcore.ErrNotRead) {
			continue // its reconcile said so
		}
		if err != nil {
			return err
		}
		in.Now = r.cluster.Now()
		said, err := permissions.Assess(in)
		if errors.Is(err, olmcore.ErrInvalidInput) {
			continue // its reconcile said so
		}
		if err != nil {
			return err
		}
		for i := range said {
			if err := r.add(fake.Event{Controller: controllers.Permissions, Key: key, Diagnostic: &said[i]}); err != nil {
				return err
			}
		}
	}
	return nil
}
