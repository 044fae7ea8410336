// SPDX-License-Identifier: Apache-2.0

package maintenancewindow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

const (
	ReasonOutsideWindow    = "OutsideWindow"    // of a plan that waits: it is approved when the window opens
	ReasonGainsPermissions = "GainsPermissions" // of one that waits for a person, or for allowPermissions of the window
	ReasonWindowOpen       = "WindowOpen"       // of the approval
	AnnotationApprovedBy   = "maintenance.example.com/approved-by"
	maxWaiting, maxGains   = 100, 10 // what a status lists
)

// Watched are the kinds whose changes count for windows, besides their own.
var Watched = []schema.GroupVersionKind{
	olmcore.GVKOf(&v1alpha1.InstallPlan{}), olmcore.GVKOf(&v1alpha1.Subscription{}), olmcore.GVKOf(&rbacv1.Role{}),
	olmcore.GVKOf(&rbacv1.RoleBinding{}), olmcore.GVKOf(&rbacv1.ClusterRole{}), olmcore.GVKOf(&rbacv1.ClusterRoleBinding{}), olmcore.GVKOf(&v1alpha1.ClusterServiceVersion{}),
}

// Input is everything Reconcile looks at. Objects are all of the Watched kinds, sorted by name.
type Input struct {
	Now     time.Time
	Window  *unstructured.Unstructured
	Objects []olmcore.Object
}

// Reconcile approves the plans that a window selects while it is open, and says in its status which others wait, and
// why. The error is a breach of contract; a window that cannot be used says so itself.
func Reconcile(in Input) (result olmcore.Result, err error) {
	if in.Window == nil || in.Now.IsZero() {
		return result, &olmcore.InputError{Field: "Window", Problem: "is nil, or Now is zero"}
	}
	w, problem := read(in.Window, in.Now)
	status := Status{ObservedGeneration: in.Window.GetGeneration(), Problem: problem}
	if problem != "" {
		return result, write(in.Window, w.Status, status, &result)
	}
	name, opensAt := in.Window.GetName(), metav1.NewTime(w.next(in.Now))
	if at := w.Status.OpensAt; at != nil && at.After(in.Now) && w.Status.ObservedGeneration == status.ObservedGeneration {
		opensAt = *at // a manager with another clock says so: they would contradict each other for ever
	}
	for _, o := range in.Objects {
		p, isPlan := o.(*v1alpha1.InstallPlan)
		awaits := isPlan && p.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && !p.Spec.Approved && p.DeletionTimestamp == nil
		if !awaits || !in.selects(w, p) {
			continue
		}
		waits, severity := Waiting{Namespace: p.Namespace, Name: p.Name}, olmcore.Info
		if gains := in.gains(p); len(gains) > 0 && !w.Spec.AllowPermissions && in.upgrades(p) {
			waits.Reason, severity = ReasonGainsPermissions, olmcore.Warning
			waits.Message = "approve it yourself, or set spec.allowPermissions: " + strings.Join(gains[:min(len(gains), maxGains)], "; ")
		} else if !w.isOpen(in.Now) {
			waits.Reason, waits.Message, status.OpensAt = ReasonOutsideWindow, "approved at "+opensAt.UTC().Format(time.RFC3339), &opensAt
			result.Requeue(w.next(in.Now).Sub(in.Now))
		} else {
			after := p.DeepCopy()
			after.Spec.Approved = true
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnotationApprovedBy, name)
			result.Actions = append(result.Actions, olmcore.UpdateOf(p, after, olmcore.Cause{Reason: ReasonWindowOpen})) // refused if p has changed
			result.Transitions = append(result.Transitions, olmcore.Moved(olmcore.RefOf(p), "Approval", "Waiting", "Approved", in.Now))
			continue
		}
		d := olmcore.Diagnose(severity, waits.Reason, olmcore.RefOf(p), "", "window %s: %s", name, waits.Message)
		waits.Message = strings.TrimPrefix(d.Message, "window "+name+": ") // Diagnose escaped hidden characters
		status.Waiting, result.Diagnostics = append(status.Waiting, waits), append(result.Diagnostics, d)
	}
	status.Waiting = status.Waiting[:min(len(status.Waiting), maxWaiting)]
	return result, write(in.Window, w.Status, status, &result)
}

// write adds to a result the action that writes the status, unless it is so already.
func write(window *unstructured.Unstructured, was, status Status, result *olmcore.Result) (err error) {
	if equality.Semantic.DeepEqual(was, status) {
		return nil
	}
	after := window.DeepCopy()
	after.Object["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	result.Actions = append(result.Actions, olmcore.UpdateStatusOf(window, after, olmcore.Cause{Reason: "StatusChanged"}))
	return err
}

// selects reports whether the window is for a plan, as it selects all Subscriptions that follow it.
func (in Input) selects(w window, p *v1alpha1.InstallPlan) (selected bool) {
	for _, o := range in.Objects {
		s, is := o.(*v1alpha1.Subscription)
		follows := is && s.Namespace == p.Namespace && s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.UID == p.UID
		if selected = selected || follows; follows && !labels.SelectorFromSet(w.Spec.Subscriptions).Matches(labels.Set(s.Labels)) {
			return false
		}
	}
	return selected && (len(w.Spec.Namespaces) == 0 || slices.Contains(w.Spec.Namespaces, p.Namespace))
}

// upgrades reports whether the namespace of a plan has a version that the plan installs, replaces or skips, or one of
// its packages. If they are not known, any version counts. Statuses do not count, because tenants may write them.
func (in Input) upgrades(p *v1alpha1.InstallPlan) bool {
	names, packages, known := p.Spec.ClusterServiceVersionNames, []string(nil), len(p.Status.BundleLookups) == 0
	for _, step := range p.Status.Plan {
		if step != nil && step.Resource.Kind == v1alpha1.ClusterServiceVersionKind {
			c, ref, text := v1alpha1.ClusterServiceVersion{}, v1alpha1.BundleLookup{}, []byte(step.Resource.Manifest) // it is one of the two
			isRead := json.Unmarshal(text, &c) == nil && json.Unmarshal(text, &ref) == nil
			brought := append(olmcore.PackagesOf(ref.Properties), olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])...)
			names, packages = slices.Concat(names, c.Spec.Skips, []string{c.Spec.Replaces, ref.Replaces}), append(packages, brought...)
			known = known && isRead && len(brought) > 0
		}
	}
	return slices.ContainsFunc(in.Objects, func(o olmcore.Object) bool {
		if c, is := o.(*v1alpha1.ClusterServiceVersion); is && c.Namespace == p.Namespace && !v1alpha1.IsCopied(c) {
			has := olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties])
			isOther := known && len(packages) > 0 && len(has) == 1 && !slices.Contains(packages, has[0])
			return !isOther || slices.Contains(names, c.Name)
		}
		return false
	})
}

// gains says what a plan would give to accounts that they have not in the cluster, and what of that cannot be told.
func (in Input) gains(p *v1alpha1.InstallPlan) (unread []string) {
	if len(p.Status.BundleLookups) > 0 {
		unread = append(unread, "bundles that are not unpacked yet")
	}
	var brought []olmcore.Object
	for _, step := range p.Status.Plan {
		if step == nil || !strings.Contains(step.Resource.Kind, "Role") { // a step is executed by its kind, whatever group it names
			continue
		}
		o, fields := olmcore.NewObject(rbacv1.SchemeGroupVersion.WithKind(step.Resource.Kind)), map[string]any{}
		err := json.Unmarshal([]byte(step.Resource.Manifest), &fields)
		if err != nil || decode.FromMap(fields, o) != nil || o.GetName() != step.Resource.Name {
			unread = append(unread, fmt.Sprintf("%s %s, which is in a bundle and not in the plan", step.Resource.Kind, step.Resource.Name))
			continue
		}
		o.SetNamespace(p.Namespace) // which does not count for what is the cluster's
		brought = append(brought, o)
	}
	return append(unread, permissions.Gained(in.Objects, brought)...)
}

// Controller returns the controller, which runs in the same programs as those of the library.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "maintenancewindow", Kinds: []schema.GroupVersionKind{Kind}, Reconcile: gather,
		Affected: func(o olmcore.Object) []types.NamespacedName {
			if olmcore.GVKOf(o) == Kind {
				return []types.NamespacedName{{Name: o.GetName()}}
			} else if slices.Contains(Watched, olmcore.GVKOf(o)) {
				return []types.NamespacedName{{}} // all windows
			}
			return nil
		},
	}
}

// gather reads what Reconcile looks at. That a window does not exist is an error that the Runner knows.
func gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (result olmcore.Result, err error) {
	o, err := olmcore.GetKind(ctx, r, Kind, "", key.Name)
	if err != nil {
		return result, err
	}
	in := Input{Now: now, Window: o.(*unstructured.Unstructured)}
	for _, kind := range Watched {
		objects, err := r.List(ctx, kind, "", nil)
		if err != nil {
			return result, err
		}
		in.Objects = append(in.Objects, objects...)
	}
	return Reconcile(in)
}
