// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

var (
	configMapGVK = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	podGVK       = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

func TestAViewLagsKindByKind(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(configMap("old")))
	v := c.View("one")
	require.Same(t, v, c.View("one"))
	sees := func(o olmcore.Object) bool {
		_, err := v.Get(t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
		if err != nil {
			require.True(t, apierrors.IsNotFound(err))
		}
		return err == nil
	}
	require.True(t, sees(configMap("old")), "a new view is up to date")

	require.NoError(t, c.Create(configMap("new"), newPod("p")))
	require.NoError(t, c.Delete(refTo(configMap("old"))))
	require.True(t, sees(configMap("old")))
	require.False(t, sees(configMap("new")))
	require.False(t, sees(newPod("p")))
	require.Equal(t, []schema.GroupVersionKind{configMapGVK, podGVK}, v.Behind())
	require.Equal(t, 2, v.Lag(configMapGVK))

	require.True(t, v.Next(configMapGVK))
	require.True(t, sees(configMap("new")))
	require.True(t, sees(configMap("old")))
	v.SyncKind(configMapGVK)
	require.False(t, sees(configMap("old")))
	require.False(t, sees(newPod("p")), "another kind is still behind")
	require.False(t, v.Next(configMapGVK))
	v.Sync()
	require.True(t, sees(newPod("p")))
	require.Empty(t, v.Behind())

	require.NoError(t, c.Create(configMap("later")))
	v.Restart()
	require.True(t, sees(configMap("later")))
	require.Zero(t, v.Lag(configMapGVK))
	list, err := v.List(t.Context(), configMapGVK, "ns", nil)
	require.NoError(t, err)
	require.Len(t, list, 2)
}

func TestAViewSeesOldVersions(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(configMap("cm")))
	v := c.View("one")
	require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Data = map[string]string{"a": "1"} }))
	o, err := v.Get(t.Context(), configMapGVK, "ns", "cm")
	require.NoError(t, err)
	require.Empty(t, o.(*corev1.ConfigMap).Data)
	after := o.DeepCopyObject().(*corev1.ConfigMap)
	after.Data = map[string]string{"b": "2"}
	err = c.Do(t.Context(), olmcore.UpdateOf(o, after, olmcore.Cause{}))
	require.Equal(t, olmcore.Conflict, olmcore.Classify(err), "what is decided on old state conflicts")
}

func TestAViewIsNeverBehindOnDiscovery(t *testing.T) {
	c := newCluster(t)
	v := c.View("one")
	_, err := v.Get(t.Context(), widgetGVK, "ns", "w")
	require.True(t, meta.IsNoMatchError(err))
	require.NoError(t, c.Create(crd("widgets", "Widget", "v1")))
	settle(t, c)
	require.NoError(t, c.Create(widget("w")))
	_, err = v.Get(t.Context(), widgetGVK, "ns", "w")
	require.True(t, apierrors.IsNotFound(err))
	v.Sync()
	_, err = v.Get(t.Context(), widgetGVK, "ns", "w")
	require.NoError(t, err)
}

func TestAViewThatFallsTooFarBehindIsBroughtForward(t *testing.T) {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	slow, quick := c.View("slow"), c.View("quick")
	require.NoError(t, c.Create(configMap("cm")))
	longest := 0
	for i := range 10_000 {
		require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Data = map[string]string{"i": fmt.Sprint(i)} }))
		quick.Sync()
		longest = max(longest, slow.Lag(configMapGVK))
	}
	require.Less(t, longest, 2049)
	slow.Sync()
	o, err := slow.Get(t.Context(), configMapGVK, "ns", "cm")
	require.NoError(t, err)
	require.Equal(t, "9999", o.(*corev1.ConfigMap).Data["i"])
	slow.Close()
	quick.Close()
	require.NotSame(t, slow, c.View("slow"))
}

func TestFaults(t *testing.T) {
	create := func(name string) olmcore.Action { return olmcore.CreateOf(configMap(name), olmcore.Cause{}) }
	cases := map[string]struct {
		mode    fake.FaultMode
		class   olmcore.ErrorClass
		written bool
		next    olmcore.ErrorClass
	}{
		"fail without effect": {fake.FailWithoutEffect, olmcore.Transient, false, olmcore.ClassNone},
		"fail after effect":   {fake.FailAfterEffect, olmcore.Transient, true, olmcore.ClassNone},
		"conflict":            {fake.Conflict, olmcore.Conflict, false, olmcore.ClassNone},
		"crash":               {fake.Crash, olmcore.ClassNone, true, olmcore.Transient},
		"unknown":             {"Nonsense", olmcore.Transient, false, olmcore.ClassNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Faults().Inject(fake.Fault{Verb: olmcore.VerbCreate, Kind: "ConfigMap", Nth: 2, Mode: tc.mode})
			require.Len(t, c.Faults().Pending(), 1)
			require.NoError(t, c.Do(t.Context(), olmcore.CreateOf(newPod("p"), olmcore.Cause{})), "another kind")
			require.NoError(t, c.Do(t.Context(), create("first")))
			require.NoError(t, c.Do(t.Context(), olmcore.DeleteOf(stored(t, c, configMap("first")), olmcore.Cause{})), "another verb")
			require.NoError(t, c.Create(configMap("user")), "a person is not affected")
			require.Equal(t, tc.class, olmcore.Classify(c.Do(t.Context(), create("second"))))
			require.Equal(t, tc.written, exists(c, configMap("second")))
			require.Empty(t, c.Faults().Pending())
			require.Equal(t, tc.mode == fake.Crash, c.Faults().Crashed())
			require.Equal(t, tc.next, olmcore.Classify(c.Do(t.Context(), create("third"))))
			c.Faults().Clear()
			require.NoError(t, c.Do(t.Context(), create("fourth")))
		})
	}
}
