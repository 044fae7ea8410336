// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Trust returns the writes that keep the existing clients correct without a new installation. Trust updates their
// caBundles, and the namespaceSelectors and rules of this CSV's webhooks. Trust also removes the clients that the spec
// no longer describes: webhooks and conversions once all described webhooks exist, and APIServices at once.
func (s Clients) Trust() []olmcore.Action { return factsOf(s).trust() }

func (f *facts) trust() (actions []olmcore.Action) {
	for _, k := range kinds {
		actions = append(actions, k.removed(f)...)
	}
	return inOrder(append(actions, updates(f, targets(actions), kind.updateOf)...))
}

// UpdateBundles returns the updates of the caBundles of the existing clients. It changes nothing else.
func (s Clients) UpdateBundles() []olmcore.Action {
	return inOrder(updates(factsOf(s), nil, kind.updateBundles))
}

// updates returns the updates of the existing clients. update returns the update of one object, or nil. leftOut
// contains the objects that are deleted or reverted in the same call.
func updates(
	f *facts, leftOut sets.Set[olmcore.Key], update func(k kind, f *facts, o olmcore.Object) olmcore.Action,
) (actions []olmcore.Action) {
	for _, k := range kinds {
		for _, o := range k.existing(f) {
			if leftOut.Has(olmcore.KeyOf(o)) || k.mayUpdate != nil && !k.mayUpdate(f, o) {
				continue
			}
			if a := update(k, f, o); a != nil {
				actions = append(actions, a)
			}
		}
	}
	return actions
}

// updateOf returns the update of an object that is called by the API server, or nil if it is up to date.
func (k kind) updateOf(f *facts, o olmcore.Object) olmcore.Action {
	c := k.bundlesOf(f, o)
	if k.follow != nil {
		k.follow(f, c)
	}
	return k.write(f, c)
}

// updateBundles is like updateOf, but updates only the caBundles.
func (k kind) updateBundles(f *facts, o olmcore.Object) olmcore.Action {
	return k.write(f, k.bundlesOf(f, o))
}

// change contains an object before and after a change, and the reason for it. Without a change, after is before, and
// why is empty.
type change struct {
	before, after olmcore.Object
	why           string
}

// copied returns the changed object. The first call makes the copy that may be changed.
func (c *change) copied() olmcore.Object {
	if c.after == c.before {
		c.after = c.before.DeepCopyObject().(olmcore.Object)
	}
	return c.after
}

// bundlesOf returns the change of an object to the caBundles that it needs.
func (k kind) bundlesOf(f *facts, o olmcore.Object) *change {
	c := &change{before: o, after: o}
	for i, e := range f.endpoints(o) {
		bundle := f.bundle(e.service, *e.bundle)
		if bytes.Equal(bundle, *e.bundle) {
			continue
		}
		*f.endpoints(c.copied())[i].bundle, c.why = bundle, k.distrust(o)
	}
	return c
}

// write returns the update that makes a change, or nil if there is none.
func (k kind) write(f *facts, c *change) olmcore.Action {
	if c.why == "" {
		return nil
	}
	u := olmcore.UpdateOf(c.before, c.after, olmcore.Cause{Reason: ReasonTrust, Message: c.why})
	if k.isLimited {
		u.As = f.source.Account
	}
	return u
}

// wantedBundle returns the caBundle that a client of a Deployment should have. have is its current caBundle. The result
// is nil if there is no certificate.
func (s Clients) wantedBundle(deployment string, have []byte) []byte {
	if s.Certificates == nil {
		return nil
	}
	return s.Certificates.Trust(deployment, have)
}

// bundle returns the caBundle that a client of a Service should have. have is its current caBundle. If the result is
// nil, the client must not be created yet.
func (f *facts) bundle(service string, have []byte) []byte {
	if bundle := f.source.wantedBundle(f.services[service], have); bundle != nil {
		return bundle
	}
	return have
}

// trusts reports whether a caBundle contains at least one of the wanted authorities. If no authority is wanted, it
// reports whether the caBundle contains any. Missing authorities are added without a new installation.
func (s Clients) trusts(have, want []byte) bool {
	if bytes.Equal(have, want) {
		return len(have) > 0
	}
	trusted, wanted := s.Memory.Bundle(have), s.Memory.Bundle(want)
	isWanted := func(a serving.Authority) bool { return wanted.Has(a.ID) }
	return len(wanted) == 0 && len(trusted) > 0 || slices.ContainsFunc(trusted, isWanted)
}
