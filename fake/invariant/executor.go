// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"errors"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// CheckExecutor checks an Executor, and the Reader beside it, against what olmcore.Run and the reconcile functions
// expect of them. It writes one Subscription into namespace, which must exist, and deletes it again. The error names
// the first expectation that does not hold.
func CheckExecutor(ctx context.Context, x olmcore.Executor, r olmcore.Reader, namespace string) error {
	c := &executorCheck{ctx: ctx, x: x, r: r, namespace: namespace}
	for _, step := range []struct {
		what  string
		check func() error
	}{
		{"an object that is absent reads as nil", c.absent},
		{"create makes the object, with a UID and a resourceVersion", c.create},
		{"creating it again is AlreadyExists", c.createAgain},
		{"update changes spec and metadata and leaves the status alone", c.update},
		{"update of the status changes nothing else", c.updateStatus},
		{"update removes what is not there any more", c.removal},
		{"update with an old resourceVersion is a Conflict", c.stale},
		{"update of the status with an old resourceVersion is a Conflict", c.staleStatus},
		{"delete with an old resourceVersion is a Conflict", c.staleDelete},
		{"update of another incarnation is refused", c.otherUID},
		{"delete of another incarnation is refused", c.deleteOther},
		{"the action's objects are left alone", c.unshared},
		{"delete removes the object", c.remove},
		{"deleting it again is NotFound", c.removeAgain},
		{"update of what is gone is NotFound", c.updateGone},
	} {
		if err := step.check(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

const checkedName = "check-executor"

var checkCause = olmcore.Cause{Reason: "CheckExecutor", Message: "an executor is checked"}

type executorCheck struct {
	ctx       context.Context
	x         olmcore.Executor
	r         olmcore.Reader
	namespace string
	first     *v1alpha1.Subscription // as it was when created
}

func (c *executorCheck) get() (*v1alpha1.Subscription, error) {
	return olmcore.Get[*v1alpha1.Subscription](c.ctx, c.r, c.namespace, checkedName)
}

func (c *executorCheck) present() (*v1alpha1.Subscription, error) {
	s, err := c.get()
	if err == nil && s == nil {
		err = errors.New("the object is not there")
	}
	return s, err
}

func (c *executorCheck) object() *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: checkedName},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "p", Channel: "c", CatalogSource: "s", CatalogSourceNamespace: c.namespace},
	}
}

func (c *executorCheck) absent() error {
	s, err := c.get()
	if err == nil && s != nil {
		err = fmt.Errorf("%s exists before the check", olmcore.KeyOf(s))
	}
	return err
}

func (c *executorCheck) create() error {
	if err := c.x.Do(c.ctx, olmcore.CreateOf(c.object(), checkCause)); err != nil {
		return err
	}
	s, err := c.present()
	if err != nil {
		return err
	}
	c.first = s
	if s.UID == "" || s.ResourceVersion == "" {
		return fmt.Errorf("UID is %q, resourceVersion is %q", s.UID, s.ResourceVersion)
	}
	if s.CreationTimestamp.IsZero() {
		return errors.New("there is no creationTimestamp, on which grace periods are counted")
	}
	return nil
}

func (c *executorCheck) createAgain() error {
	return expect(c.x.Do(c.ctx, olmcore.CreateOf(c.object(), checkCause)), apierrors.IsAlreadyExists)
}

func (c *executorCheck) update() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Labels = map[string]string{"checked": "yes"}
	after.Spec.Channel = "d"
	if err := c.x.Do(c.ctx, olmcore.UpdateOf(before, after, checkCause)); err != nil {
		return err
	}
	s, err := c.present()
	switch {
	case err != nil:
		return err
	case s.Spec.Channel != "d" || s.Labels["checked"] != "yes":
		return errors.New("the change is not there")
	case s.ResourceVersion == before.ResourceVersion:
		return errors.New("the resourceVersion is still the old one")
	}
	return nil
}

func (c *executorCheck) updateStatus() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Status.CurrentCSV = "p.v1"
	after.Status.LastUpdated = olmcore.Timestamp(before.CreationTimestamp.Time)
	if err := c.x.Do(c.ctx, olmcore.UpdateStatusOf(before, after, checkCause)); err != nil {
		return err
	}
	s, err := c.present()
	switch {
	case err != nil:
		return err
	case s.Status.CurrentCSV != "p.v1":
		return errors.New("the status is not there")
	case s.Spec.Channel != "d":
		return errors.New("the spec was changed")
	case s.Generation != before.Generation:
		return errors.New("the generation was changed")
	}
	return nil
}

func (c *executorCheck) stale() error {
	after := c.first.DeepCopy()
	after.Spec.Channel = "lost"
	return expect(c.x.Do(c.ctx, olmcore.UpdateOf(c.first, after, checkCause)), apierrors.IsConflict)
}

func (c *executorCheck) removal() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Labels, after.Spec.Channel = nil, ""
	if err := c.x.Do(c.ctx, olmcore.UpdateOf(before, after, checkCause)); err != nil {
		return err
	}
	s, err := c.present()
	switch {
	case err != nil:
		return err
	case s.Labels["checked"] != "" || s.Spec.Channel != "":
		return errors.New("the label or the field is still there")
	case s.Spec.Package != before.Spec.Package || s.Status.CurrentCSV != before.Status.CurrentCSV:
		return errors.New("something else was removed")
	}
	return nil
}

func (c *executorCheck) staleStatus() error {
	after := c.first.DeepCopy()
	after.Status.CurrentCSV = "lost"
	return expect(c.x.Do(c.ctx, olmcore.UpdateStatusOf(c.first, after, checkCause)), apierrors.IsConflict)
}

func (c *executorCheck) staleDelete() error {
	return expect(c.x.Do(c.ctx, olmcore.DeleteOf(c.first, checkCause)), apierrors.IsConflict)
}

func (c *executorCheck) updateGone() error {
	after := c.first.DeepCopy()
	after.Spec.Channel = "lost"
	return expect(c.x.Do(c.ctx, olmcore.UpdateOf(c.first, after, checkCause)), apierrors.IsNotFound)
}

func (c *executorCheck) otherUID() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	other := before.DeepCopy()
	other.UID = "00000000-0000-0000-0000-000000000000"
	after := other.DeepCopy()
	after.Spec.Channel = "lost"
	return expect(c.x.Do(c.ctx, olmcore.UpdateOf(other, after, checkCause)), refused)
}

func (c *executorCheck) deleteOther() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	other := before.DeepCopy()
	other.UID = "00000000-0000-0000-0000-000000000000"
	return expect(c.x.Do(c.ctx, olmcore.DeleteOf(other, checkCause)), refused)
}

func (c *executorCheck) unshared() error {
	before, err := c.present()
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Labels = map[string]string{"checked": "again"}
	action := olmcore.UpdateOf(before, after, checkCause)
	want := Clone(action)
	if err := c.x.Do(c.ctx, action); err != nil {
		return err
	}
	if difference := Describe(olmcore.Result{Actions: []olmcore.Action{action}}); difference != Describe(
		olmcore.Result{Actions: []olmcore.Action{want}},
	) {
		return errors.New("the executor changed Before or After")
	}
	return nil
}

func (c *executorCheck) remove() error {
	s, err := c.present()
	if err != nil {
		return err
	}
	if err := c.x.Do(c.ctx, olmcore.DeleteOf(s, checkCause)); err != nil {
		return err
	}
	return c.absent()
}

func (c *executorCheck) removeAgain() error {
	return expect(c.x.Do(c.ctx, olmcore.DeleteOf(c.first, checkCause)), apierrors.IsNotFound)
}

// refused: a UID that does not fit is a Conflict of the API server; executors
// that look first may answer NotFound, or Invalid as a patch of the UID is.
func refused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

func expect(err error, want func(error) bool) error {
	if want(err) {
		return nil
	}
	if err == nil {
		return errors.New("it succeeded")
	}
	return err
}
