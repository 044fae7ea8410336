// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/internal/admission"
	"github.com/olmcore/olm/olmcore"
)

var (
	_ olmcore.Executor = (*Cluster)(nil)
	_ olmcore.Reader   = (*Cluster)(nil)
)

// Do implements olmcore.Executor. Updates are merge patches of the difference between Before and After, so that fields
// their writer does not know survive; Target's UID and resourceVersion are preconditions. Injected faults affect only
// Do.
func (c *Cluster) Do(ctx context.Context, a olmcore.Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if v := reflect.ValueOf(a); a == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return &olmcore.InputError{Field: "action", Problem: "is nil"}
	}
	verb, target, _ := a.Describe()
	return c.faults.do(verb, target, c.store.Resource(target), func() error {
		if c.Authorize != nil {
			if err := c.Authorize(a.Identity(), verb, target); err != nil {
				return err
			}
		}
		return c.perform(a)
	})
}

func (c *Cluster) perform(a olmcore.Action) error {
	switch a := a.(type) {
	case olmcore.Create:
		return c.create(a.Object)
	case olmcore.Update:
		return c.update(a)
	case olmcore.UpdateStatus:
		return c.updateStatus(a)
	case olmcore.Delete:
		return c.delete(a.Target, a.GracePeriodSeconds, a.PropagationPolicy)
	default:
		return &olmcore.InputError{Field: "action", Problem: fmt.Sprintf("has the unknown type %T", a)}
	}
}

// delete is a DELETE of a user or a controller.
func (c *Cluster) delete(target olmcore.Ref, grace *int64, policy metav1.DeletionPropagation) error {
	if c.webhooks.Any() {
		t, current, err := c.store.Deletable(target)
		if err == nil {
			err = c.webhooks.Admit(admission.Write{Kind: t.Kind, Operation: admissionregistrationv1.Delete, Old: current})
		}
		if err != nil {
			return err
		}
	}
	return c.store.Delete(target, grace, policy)
}
