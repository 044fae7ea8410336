// SPDX-License-Identifier: Apache-2.0

package invariant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// input is a small question: shall there be a label on a ConfigMap?
type input struct {
	Now        time.Time
	ConfigMap  *corev1.ConfigMap
	ConfigMaps []*corev1.ConfigMap
}

var because = olmcore.Cause{Reason: "Test"}

func label(in input) (olmcore.Result, error) {
	if in.ConfigMap == nil {
		return olmcore.Result{}, &olmcore.InputError{Field: "ConfigMap", Problem: "is nil"}
	}
	if in.ConfigMap.Labels["seen"] == "yes" {
		return olmcore.Result{}, nil
	}
	after := in.ConfigMap.DeepCopy()
	after.Labels = map[string]string{"seen": "yes"}
	return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(in.ConfigMap, after, because)}}, nil
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: labels}}
}

// TestEachLawCatchesWhoBreaksIt runs every law on a function that keeps it and on one that does not.
func TestEachLawCatchesWhoBreaksIt(t *testing.T) {
	calls := 0
	scratch := make([]olmcore.Diagnostic, 1)
	in := input{Now: noon, ConfigMap: configMap("a", nil), ConfigMaps: []*corev1.ConfigMap{configMap("b", nil), configMap("c", nil)}}
	require.NoError(t, invariant.Laws(label, in))
	require.NoError(t, invariant.Laws(label, input{Now: noon}), "refusing an input is fine when it is done every time")
	update := func(change func(*olmcore.Update)) func(input) (olmcore.Result, error) {
		return func(in input) (olmcore.Result, error) {
			result, err := label(in)
			u := result.Actions[0].(olmcore.Update)
			change(&u)
			result.Actions[0] = u
			return result, err
		}
	}
	for want, f := range map[string]func(input) (olmcore.Result, error){
		"called again": func(in input) (olmcore.Result, error) {
			calls++
			return olmcore.Result{RequeueAfter: time.Duration(calls)}, nil
		},
		"shuffled": func(in input) (olmcore.Result, error) {
			return olmcore.Result{Diagnostics: []olmcore.Diagnostic{{Message: in.ConfigMaps[0].Name}}}, nil
		},
		"input was changed: .ConfigMap.ObjectMeta.Labels": func(in input) (olmcore.Result, error) {
			in.ConfigMap.Labels = map[string]string{"seen": "yes"}
			return olmcore.Result{}, nil
		},
		"was changed by the next": func(in input) (olmcore.Result, error) {
			scratch[0].Message = in.Now.String()
			return olmcore.Result{Diagnostics: scratch}, nil
		},
		"not deadline-sound": func(in input) (olmcore.Result, error) {
			if in.Now.After(noon.Add(30 * time.Second)) {
				return label(in)
			}
			return olmcore.Result{RequeueAfter: time.Minute}, nil
		},
		"not shift-invariant": func(in input) (olmcore.Result, error) {
			if in.Now.Equal(noon) {
				return olmcore.Result{}, nil
			}
			return olmcore.Result{RequeueAfter: time.Second}, nil
		},
		"update and update of ConfigMap ns/a": func(in input) (olmcore.Result, error) {
			result, err := label(in)
			result.Actions = append(result.Actions, result.Actions...)
			return result, err
		},
		"without a complete target": update(func(u *olmcore.Update) { u.Target.Kind = "" }),
		"without a reason":          update(func(u *olmcore.Update) { u.Cause = olmcore.Cause{} }),
		"without a UID":             update(func(u *olmcore.Update) { u.Target.UID = "" }),
		"without a resourceVersion": update(func(u *olmcore.Update) { u.Target.ResourceVersion = "" }),
		"delete of ConfigMap ns/a without a resourceVersion": func(in input) (olmcore.Result, error) {
			result, err := label(in)
			for i, a := range result.Actions {
				_, target, cause := a.Describe()
				result.Actions[i] = olmcore.Delete{Target: target.Unversioned(), Cause: cause}
			}
			return result, err
		},
		"not recordable":              update(func(u *olmcore.Update) { u.After = nil }),
		"an error that is no breach ": func(input) (olmcore.Result, error) { return olmcore.Result{}, context.Canceled },
	} {
		require.ErrorContains(t, invariant.Laws(f, in), want)
	}
}

// labeller is label as a controller.
func labeller(reconcile func(input) (olmcore.Result, error)) func(*fake.Cluster) []controller.Controller {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	return func(*fake.Cluster) []controller.Controller {
		return []controller.Controller{{
			Name: "labels", Kinds: []schema.GroupVersionKind{kind},
			Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
				o, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
				if err != nil {
					return olmcore.Result{}, err
				}
				return reconcile(input{Now: now, ConfigMap: o})
			},
		}}
	}
}

func twoConfigMaps() (*fake.Cluster, error) {
	c := fake.NewCluster(noon)
	return c, c.Load(configMap("a", nil), configMap("b", nil))
}

func TestEachWorldLawCatchesWhoBreaksIt(t *testing.T) {
	good := invariant.World{New: twoConfigMaps, Controllers: labeller(label), Rounds: 2}
	require.NoError(t, invariant.Settles(good))
	require.NoError(t, invariant.Repeatable(good))
	require.NoError(t, invariant.Resumable(good))

	restless := good
	restless.Controllers = labeller(func(in input) (olmcore.Result, error) {
		after := in.ConfigMap.DeepCopy()
		after.Labels = map[string]string{"version": in.ConfigMap.ResourceVersion}
		return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(in.ConfigMap, after, because)}}, nil
	})
	require.ErrorContains(t, invariant.Settles(restless), "not settling: after 2 rounds")

	forgetful := good
	forgetful.Controllers = labeller(func(in input) (olmcore.Result, error) {
		if in.ConfigMap.Name != "a" || in.ConfigMap.ResourceVersion != "1" {
			return olmcore.Result{}, nil
		}
		child := configMap("child", nil)
		child.UID, child.ResourceVersion = "", ""
		result, err := label(in)
		result.Actions = append(result.Actions, olmcore.CreateOf(child, because))
		return result, err
	})
	require.NoError(t, invariant.Settles(forgetful))
	require.ErrorContains(t, invariant.Resumable(forgetful), "without its create of ConfigMap ns/child")
}

func TestShiftAndCloneReachEveryTime(t *testing.T) {
	at := metav1.NewTime(noon)
	in := input{Now: noon, ConfigMap: configMap("a", nil)}
	in.ConfigMap.DeletionTimestamp = &at
	moved := invariant.Shift(in, time.Hour)
	require.Equal(t, noon.Add(time.Hour), moved.Now)
	require.Equal(t, noon.Add(time.Hour), moved.ConfigMap.DeletionTimestamp.Time)
	require.Equal(t, noon, in.ConfigMap.DeletionTimestamp.Time)
	clone := invariant.Clone(in)
	clone.ConfigMap.Name = "b"
	require.Equal(t, "a", in.ConfigMap.Name)
}
