// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// Notes are a kind of the user's own: each has the color of the ConfigMap of its name in its status.
var noteKind = schema.GroupVersionKind{Group: "notes.example.com", Version: "v1", Kind: "Note"}

func noteDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "notes.notes.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: noteKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: noteKind.Kind, ListKind: "NoteList", Plural: "notes", Singular: "note"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true)}}}},
		},
	}
}

func note(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(noteKind)
	u.SetNamespace(namespace)
	u.SetName("x")
	u.SetLabels(map[string]string{"team": namespace})
	return u
}

func noteController() controller.Controller {
	key := func(o olmcore.Object) []types.NamespacedName {
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
	}
	return controller.Controller{
		Name: "notes", Kinds: []schema.GroupVersionKind{noteKind}, KeysOf: key, Affected: key,
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (result olmcore.Result, err error) {
			o, err := r.Get(ctx, noteKind, key.Namespace, key.Name)
			if err != nil {
				return result, err
			}
			cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
			if err != nil || cm == nil {
				return result, err
			}
			before := o.(*unstructured.Unstructured)
			was, _, _ := unstructured.NestedString(before.Object, "status", "color")
			if was == cm.Data["color"] {
				return result, nil
			}
			after := before.DeepCopy()
			after.Object["status"] = map[string]any{"color": cm.Data["color"]}
			result.Actions = append(result.Actions, olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: "ColorChanged"}))
			result.Transitions = append(result.Transitions, olmcore.Moved(olmcore.RefOf(before), "Color", was, cm.Data["color"], now))
			return result, nil
		},
	}
}

func colored(namespace, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Data: map[string]string{"color": color}}
}

// TestAControllerOfOnesOwn: it reconciles a kind of its own, hears of one of the library's, reads both from a cache,
// says what it did, and rests; whatever cache the manager has.
func TestAControllerOfOnesOwn(t *testing.T) {
	t.Parallel()
	for name, newCache := range map[string]cache.NewCacheFunc{"a cache that is shared": olmruntime.NewCache, "a cache that nothing is known of": cache.New} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake.NewCluster(time.Now())
			c.AutoCreateNamespaces = true
			require.NoError(t, c.Create(noteDefinition()))
			require.NoError(t, c.Settle())
			require.NoError(t, c.Create(note("a"), note("b"), colored("a", "green")))
			s, config := serve(t, c)
			var asked heard
			o := olmruntime.Options{OnReport: asked.told}
			mgr, err := olmruntime.SetupWithManager(usersManager(t, config, ctrl.Options{NewCache: newCache}), o, controllers.Group)
			require.NoError(t, err)
			require.NoError(t, mgr.AddController(noteController(), configMap, noteKind))
			run(t, mgr)
			has := func(namespace, color string) func(*fake.Cluster) bool {
				return func(c *fake.Cluster) bool {
					o, err := c.Get(t.Context(), noteKind, namespace, "x")
					require.NoError(t, err)
					got, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "status", "color")
					return got == color
				}
			}
			until(t, s, "what was there counts", has("a", "green"))
			do(t, s, func(c *fake.Cluster) error { return c.Create(colored("b", "red")) })
			until(t, s, "what comes counts", has("b", "red"))
			atRest(t, s)
			require.Equal(t, []string{"green", "red"}, asked.states("Note", "x", "Color"))

			notes, err := mgr.List(t.Context(), noteKind, "", labels.SelectorFromSet(labels.Set{"team": "b"}))
			require.NoError(t, err)
			require.Len(t, notes, 1)
			require.IsType(t, &unstructured.Unstructured{}, notes[0])
			require.Empty(t, s.Requests(), "it comes from a cache")
			until(t, s, "it is an Event of the controller", func(c *fake.Cluster) bool {
				events, err := c.List(t.Context(), eventsv1.SchemeGroupVersion.WithKind("Event"), "b", nil)
				require.NoError(t, err)
				return len(events) == 1 && events[0].(*unstructured.Unstructured).Object["reportingController"] == "notes"
			})
		})
	}
}

// TestAddControllerRefusesWhatItCannotRun: with what to do about it.
func TestAddControllerRefusesWhatItCannotRun(t *testing.T) {
	_, config := serve(t, fake.NewCluster(time.Now()))
	other := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(other))
	user := usersManager(t, config, ctrl.Options{Scheme: other})
	mgr, err := olmruntime.SetupWithManager(user, olmruntime.Options{}, controllers.Group)
	require.NoError(t, err)
	require.EqualError(t, mgr.AddController(controller.Controller{Name: "notes"}), "invalid input: c needs Reconcile")
	require.EqualError(t, mgr.AddController(noteController()),
		`notes: the kind Note cannot be watched: its index olm.labels: no matches for kind "Note" in version "notes.example.com/v1"`)
	ofAnother := noteController()
	ofAnother.Kinds = []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("ReplicaSet")}
	require.EqualError(t, mgr.AddController(ofAnother), "notes: the kind ReplicaSet cannot be watched: the manager's scheme lacks *v1.ReplicaSet")
	run(t, user)
	<-user.Elected()
	require.EqualError(t, mgr.AddController(noteController()), "invalid input: c comes after the start of the manager: add it before")
}
