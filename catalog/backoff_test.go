// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// ended makes the Pod one that ran for a time and ended some time ago, in an attempt.
func ended(in *catalog.Input, attempt string, ran, ago time.Duration) {
	p := in.Pods.Items[0]
	p.Status.Phase, p.Annotations["olmcore/attempt"] = corev1.PodFailed, attempt
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		StartedAt: metav1.NewTime(in.Now.Add(-ago - ran)), FinishedAt: metav1.NewTime(in.Now.Add(-ago)),
	}}
}

// TestHowLongTheNextPodWaits: the wait doubles with each attempt up to its most, and
// starts over after a long run; what a node cost waits for the cooldown.
func TestHowLongTheNextPodWaits(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	after := func(attempt string, ran time.Duration) func(*catalog.Input, time.Duration) {
		return func(in *catalog.Input, ago time.Duration) { ended(in, attempt, ran, ago) }
	}
	for name, test := range map[string]struct {
		change  func(in *catalog.Input, ago time.Duration)
		wait    time.Duration
		attempt string
	}{
		"the first":          {after("1", time.Minute), 10 * time.Second, "2"},
		"no number":          {after("x", time.Minute), 10 * time.Second, "2"},
		"less than none":     {after("-5", time.Minute), 10 * time.Second, "2"},
		"the second":         {after("2", time.Minute), 20 * time.Second, "3"},
		"the fifth":          {after("5", time.Minute), 160 * time.Second, "6"},
		"the sixth":          {after("6", time.Minute), 5 * time.Minute, "7"},
		"a great number":     {after("99999999", time.Minute), 5 * time.Minute, "20"},
		"after ten minutes":  {after("6", 10*time.Minute), 10 * time.Second, "1"},
		"just short of that": {after("6", 10*time.Minute-time.Second), 5 * time.Minute, "7"},
		"the last container to end counts": {func(in *catalog.Input, ago time.Duration) {
			ended(in, "1", time.Minute, ago)
			early := in.Pods.Items[0].Status.ContainerStatuses[0]
			early.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				StartedAt: metav1.NewTime(start.Add(-time.Hour)), FinishedAt: metav1.NewTime(start.Add(-time.Minute)),
			}}
			in.Pods.Items[0].Status.ContainerStatuses = append(in.Pods.Items[0].Status.ContainerStatuses, early)
		}, 10 * time.Second, "2"},
		"nothing is known of its end": {func(in *catalog.Input, ago time.Duration) {
			in.Pods.Items[0].Status.Phase = corev1.PodFailed
			unreadyFor(in, ago)
		}, 10 * time.Second, "2"},
		"a node of late": {func(in *catalog.Input, ago time.Duration) {
			in.Pods.Items[0].Spec.NodeName, in.Pods.Items[0].Annotations["olmcore/purpose"], in.Pods.Items[0].Annotations["olmcore/attempt"] = "nowhere", "failover", "3"
			in.Pods.Items[0].CreationTimestamp = metav1.NewTime(in.Now.Add(-ago))
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", start)
		}, 60 * time.Second, "3"},
	} {
		for _, early := range []time.Duration{time.Second, 0} {
			in := invariant.Clone(base)
			test.change(&in, test.wait-early)
			out, err := catalog.Reconcile(in)
			require.NoError(t, err)
			require.NoError(t, invariant.Laws(result, in), name)
			made := ""
			for _, a := range out.Actions {
				if c, ok := a.(olmcore.Create); ok {
					made += c.Object.GetAnnotations()["olmcore/attempt"]
				}
			}
			if early > 0 {
				require.Empty(t, made, name)
				require.Equal(t, early, out.RequeueAfter, name)
				require.Equal(t, catalog.ReasonBackOff, catalog.Assess(in).WaitingFor, name)
				require.Equal(t, strings.Contains(name, "node"), strings.Contains(fmt.Sprint(done(out)), "delete"), "the Pod is the memory: %s", name)
				continue
			}
			require.Equal(t, test.attempt, made, name)
		}
	}
}

// TestTheCooldownIsThatOfOwnFailovers: others' Pods and Pods made for other reasons ask
// for no patience.
func TestTheCooldownIsThatOfOwnFailovers(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		waits  bool
	}{
		"a failover":      {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"] = "failover" }, true},
		"a refill":        {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"] = "refill" }, false},
		"somebody else's": {func(p *corev1.Pod) { p.Annotations["olmcore/purpose"], p.OwnerReferences = "failover", nil }, false},
		"a failover of long ago": {func(p *corev1.Pod) {
			p.Annotations["olmcore/purpose"], p.CreationTimestamp = "failover", metav1.NewTime(start)
		}, false},
	} {
		in := invariant.Clone(base)
		in.Pods.Items[0].Spec.NodeName = "nowhere"
		addPod(&in, "cool-zz", func(p *corev1.Pod) {
			p.CreationTimestamp, p.Status.Phase = metav1.NewTime(in.Now.Add(-time.Second)), corev1.PodSucceeded
			p.DeletionTimestamp = new(metav1.NewTime(in.Now))
			test.change(p)
		})
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, test.waits, !strings.Contains(fmt.Sprint(done(out)), "create"), "%s: %v", name, done(out))
	}
}

// TestForWhichPodTheNextStandsIn: lost Pods before those that end, those before failed
// ones, the newest first, and none twice.
func TestForWhichPodTheNextStandsIn(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for pods, want := range map[string]string{
		"terminating,lost": "uid2", "lost,terminating": "uid1", "finished,terminating": "uid2", "terminating,finished": "uid1",
		"terminating,terminating young": "uid2", "terminating young,terminating": "uid1", "terminating,terminating": "uid2",
		"old unready,terminating": "uid2", "old unready,finished": "uid2", "candidate terminating,finished": "uid2",
	} {
		in := invariant.Clone(base)
		in.Pods.Items = described(&in, pods)
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, want, out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/replaces"], pods)
		in.Pods.Items[0].Annotations["olmcore/replaces"] = want
		out, err = catalog.Reconcile(in)
		require.NoError(t, err)
		require.NotEqual(t, want, out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/replaces"], "%s, replaced already", pods)
	}
}

// TestDamagedRolesAreRepaired, whatever is wrong with them; a role that a binding refers
// to cannot be changed.
func TestDamagedRolesAreRepaired(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, change := range map[string]func(*rbacv1.Role, *rbacv1.RoleBinding){
		"update groups":         func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].APIGroups = []string{"apps"} },
		"update more groups":    func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].APIGroups = []string{"", "apps"} },
		"update resources":      func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].Resources = []string{"secrets"} },
		"update names":          func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].ResourceNames = nil },
		"update verbs":          func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].Verbs = []string{"*"} },
		"update URLs":           func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules[0].NonResourceURLs = []string{"/"} },
		"update rules":          func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Rules = append(r.Rules, rbacv1.PolicyRule{}) },
		"update label":          func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Labels = nil },
		"update binding label":  func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Labels = nil },
		"update kind":           func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Subjects[0].Kind = "User" },
		"update group":          func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Subjects[0].APIGroup = "x" },
		"update name":           func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Subjects[0].Name = "x" },
		"update namespace":      func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = "x" },
		"delete ref":            func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.RoleRef.Name = "x" },
		"delete ref of a kind":  func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.RoleRef.Kind = "ClusterRole" },
		"delete ref of a group": func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.RoleRef.APIGroup = "x" },
	} {
		in := invariant.Clone(base)
		change(in.Roles.Items[0], in.RoleBindings.Items[0])
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Len(t, out.Actions, 1, name)
		verb, _, _ := out.Actions[0].Describe()
		require.True(t, strings.HasPrefix(name, string(verb)), name)
		if u, ok := out.Actions[0].(olmcore.Update); ok {
			switch after := u.After.(type) {
			case *rbacv1.Role:
				require.Equal(t, base.Roles.Items[0].Rules, after.Rules, name)
				require.Equal(t, base.Roles.Items[0].Labels, after.Labels, name)
			case *rbacv1.RoleBinding:
				require.Equal(t, base.RoleBindings.Items[0].Subjects, after.Subjects, name)
				require.Equal(t, base.RoleBindings.Items[0].Labels, after.Labels, name)
			}
		}
	}
}
