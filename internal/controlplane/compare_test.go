// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/olmcore"
)

// recorded is what two worlds are compared by.
type recorded struct {
	// Actions are the creations and deletions that the managers asked for, sorted,
	// each once: how often they had to is a matter of timing.
	Actions []string
	// Objects are the final ones, as YAML, without what no two runs share.
	Objects map[string]string
}

// withoutPlans leaves out the InstallPlans of namespaces in which managers raced, and which of them a Subscription
// refers to: one that saw half of what the other wrote makes a plan of its own for the rest.
func (r recorded) withoutPlans(prefix string) recorded {
	plans := " InstallPlan " + prefix
	out := recorded{Objects: map[string]string{}}
	for _, a := range r.Actions {
		if !strings.Contains(a, plans) {
			out.Actions = append(out.Actions, a)
		}
	}
	for key, text := range r.Objects {
		switch {
		case strings.HasPrefix(" "+key, plans):
		case strings.HasPrefix(key, "Subscription "+prefix):
			out.Objects[key] = raced.ReplaceAllString(text, "of the race")
		default:
			out.Objects[key] = text
		}
	}
	return out
}

// raced is what a Subscription says of which plan it refers to.
var raced = regexp.MustCompile(`install-[a-z2-7]{10}|installPlanGeneration: \d+`)

// comparedKinds are those that the library writes, or that tell it something.
var comparedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	v1alpha1.SchemeGroupVersion.WithKind("CatalogSource"), v1alpha1.SchemeGroupVersion.WithKind("Subscription"),
	v1alpha1.SchemeGroupVersion.WithKind("InstallPlan"), v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"),
	operatorsv1.GroupVersion.WithKind("OperatorGroup"), operatorsv2.GroupVersion.WithKind("OperatorCondition"),
}

// ownSpaces are the namespaces that no story has to do with.
var ownSpaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

func record(t testing.TB, w world) recorded {
	r := recorded{Objects: map[string]string{}}
	actions := map[string]bool{}
	for _, one := range w.done() {
		for _, a := range one.result.Actions {
			if verb, target, cause := a.Describe(); verb == olmcore.VerbCreate || verb == olmcore.VerbDelete {
				actions[fmt.Sprintf("%s: %s %s (%s)", one.controller, verb, target, cause.Reason)] = true
			}
		}
	}
	r.Actions = slices.Sorted(maps.Keys(actions))
	var all []olmcore.Object
	for _, gvk := range comparedKinds {
		objects, err := w.List(t.Context(), gvk, "", nil)
		require.NoError(t, err)
		all = append(all, objects...)
	}
	n := newNormalizer(all, w.done())
	for i := range r.Actions {
		r.Actions[i] = n.pods.Replace(r.Actions[i])
	}
	slices.Sort(r.Actions)
	for _, o := range all {
		if ofTheStory(o) {
			r.Objects[n.pods.Replace(olmcore.KeyOf(o).String())] = n.text(t, o)
		}
	}
	return r
}

// ofTheStory leaves out what a real cluster has by itself, and what the fake
// says it does not simulate: what is behind a Deployment.
func ofTheStory(o olmcore.Object) bool {
	key := olmcore.KeyOf(o)
	switch {
	case slices.Contains(ownSpaces, key.Namespace), key.Kind == "Namespace" && slices.Contains(ownSpaces, key.Name),
		strings.HasPrefix(key.Name, "system:"), strings.HasPrefix(key.Kind, "ClusterRole") && isOfManagers(key.Name), o.GetLabels()["kubernetes.io/bootstrapping"] != "",
		key.Kind == "ConfigMap" && key.Name == "kube-root-ca.crt", key.Kind == "ServiceAccount" && key.Name == "default",
		key.Kind == "CustomResourceDefinition" && strings.HasSuffix(key.Name, ".operators.coreos.com"):
		return false
	case key.Kind == "Pod":
		return o.GetLabels()["pod-template-hash"] == ""
	}
	return true
}

// isOfManagers reports whether a ClusterRole or binding is what the managers of a real cluster may do.
func isOfManagers(name string) bool {
	return slices.ContainsFunc([]string{"olm", "olm-customresources", "olm-operands"}, func(role string) bool {
		return name == role || strings.HasPrefix(name, role+"-manager-")
	})
}

// normalizer replaces what no two runs share by words.
type normalizer struct {
	names map[string]string // by UID
	pods  *strings.Replacer
}

var (
	times     = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$`)
	addresses = regexp.MustCompile(`^10\.\d+\.\d+\.\d+$`)
	// installedFrom holds the resourceVersion of a CSV and the UID of its group.
	// tolerationSeconds are shortened by a flag of the real one.
	dropped = strings.Fields("resourceVersion managedFields creationTimestamp tolerationSeconds")
	// suffixes are the parts of names that a hash or chance chooses.
	suffixes = regexp.MustCompile(`(kube-api-access|ReplicaSet "[a-z]+)-[0-9a-z]+`)
)

// newNormalizer numbers the Pods in the order in which they were asked for: their names come from UIDs.
func newNormalizer(all []olmcore.Object, done []report) normalizer {
	n := normalizer{names: map[string]string{}}
	for _, o := range all {
		n.names[string(o.GetUID())] = "UID of " + olmcore.KeyOf(o).String()
	}
	var words []string
	for _, r := range done {
		for _, a := range r.result.Actions {
			if c, ok := a.(olmcore.Create); ok && c.Target.Kind == "Pod" && !slices.Contains(words, c.Target.Name) {
				words = append(words, c.Target.Name, fmt.Sprintf("%s#%d", c.Object.GetGenerateName(), len(words)/2))
			}
		}
	}
	n.pods = strings.NewReplacer(words...)
	return n
}

func (n normalizer) text(t testing.TB, o olmcore.Object) string {
	m, err := olmcore.ToMap(o)
	require.NoError(t, err)
	if o, ok := o.(*v1alpha1.ClusterServiceVersion); ok && len(o.Status.Conditions) > 0 {
		// Which phases it went through depends on who was faster.
		m["status"].(map[string]any)["conditions"] = nil
	}
	if o, ok := o.(*rbacv1.ClusterRole); ok && o.AggregationRule != nil {
		m["rules"] = nil // a controller of the real one fills them in
	}
	text, err := yaml.Marshal(n.value("", m))
	require.NoError(t, err)
	return string(text)
}

func (n normalizer) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, value := range v {
			switch prefix, uid, ok := strings.Cut(k, ".uid/"); {
			case slices.Contains(dropped, k), k == "uid" && key == "metadata":
			case ok:
				out[prefix+".uid/"+n.names[uid]] = value
			default:
				out[k] = n.value(k, value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.value(key, v[i])
		}
		return out
	case string:
		switch {
		case times.MatchString(v):
			return "a time"
		case addresses.MatchString(v):
			return "an address"
		case strings.HasSuffix(key, "uid") && n.names[v] != "":
			return n.names[v]
		case strings.HasSuffix(key, "controller-uid"):
			return "the UID of a Job"
		case key == "olmcore/replaces":
			return "the UID of a Pod"
		case key == "status" && v == string(v1alpha1.StepStatusPresent):
			return string(v1alpha1.StepStatusCreated) // another plan was faster
		case key == "olmcore/contributors":
			return n.uids(v)
		}
		return suffixes.ReplaceAllString(n.pods.Replace(v), "$1-*")
	}
	return v
}

// uids names each UID of a list, sorted by name.
func (n normalizer) uids(list string) string {
	words := strings.Split(list, ",")
	for i := range words {
		words[i] = n.names[words[i]]
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// state describes the objects of OLM and their Pods, for a test that fails.
func state(t testing.TB, w world) string {
	var b strings.Builder
	for _, s := range list[*v1alpha1.Subscription](t, w, "") {
		fmt.Fprintf(&b, "Subscription %s/%s: %s %s installed %q plan %v\n", s.Namespace, s.Name, s.Status.State, s.Status.Reason, s.Status.InstalledCSV, s.Status.InstallPlanRef)
		for _, c := range s.Status.Conditions {
			fmt.Fprintf(&b, "  %s=%s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, p := range list[*v1alpha1.InstallPlan](t, w, "") {
		fmt.Fprintf(&b, "InstallPlan %s/%s: %s approved=%t %s\n", p.Namespace, p.Name, p.Status.Phase, p.Spec.Approved, p.Status.Message)
		for _, s := range p.Status.Plan {
			fmt.Fprintf(&b, "  %s %s %s\n", s.Status, s.Resource.Kind, s.Resource.Name)
		}
	}
	for _, c := range list[*v1alpha1.ClusterServiceVersion](t, w, "") {
		fmt.Fprintf(&b, "ClusterServiceVersion %s/%s: %s %s %s %v deleted=%v\n", c.Namespace, c.Name, c.Status.Phase, c.Status.Reason, c.Status.Message, c.Finalizers, c.DeletionTimestamp)
	}
	for _, c := range list[*v1alpha1.CatalogSource](t, w, "") {
		for _, cond := range c.Status.Conditions {
			fmt.Fprintf(&b, "CatalogSource %s/%s %s=%s %s %s\n", c.Namespace, c.Name, cond.Type, cond.Status, cond.Reason, cond.Message)
		}
	}
	reports := w.done()
	for _, r := range reports[max(0, len(reports)-40):] {
		for _, a := range r.result.Actions {
			verb, target, cause := a.Describe()
			fmt.Fprintf(&b, "%s %s %s: %s %s (%s)", r.manager, r.controller, r.key, verb, target, cause.Reason)
		}
		if r.err != nil {
			fmt.Fprintf(&b, " error: %v", r.err)
		}
		for _, d := range r.result.Diagnostics {
			fmt.Fprintf(&b, " %s %s", d.Reason, d.Message)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}
