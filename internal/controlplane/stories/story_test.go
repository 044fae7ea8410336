// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution"
)

// patience is how long a story waits for what has to come: much longer than it takes, as the machine may be busy.
var patience = flag.Duration("patience", 2*time.Minute, "how long a story waits for what has to come")

var byUser = olmcore.Cause{Reason: "User", Message: "a person does it"}

// story is one story: a namespace of its own, with which to be told apart from all others that run meanwhile.
type story struct {
	testing.TB
	ns    string // the namespace; NS in all texts
	begun time.Time
}

// tell tells a story, beside others. What it says must be a sentence.
func tell(t *testing.T, sentence string, tale func(s *story)) {
	count()
	t.Run(sentence, func(t *testing.T) {
		t.Parallel()
		tale(newStory(t))
	})
}

// tellAlone tells a story that touches what others see, before all others begin.
func tellAlone(t *testing.T, sentence string, tale func(s *story)) {
	count()
	t.Run(sentence, func(t *testing.T) { tale(newStory(t)) })
}

var told atomic.Int64

func newStory(t *testing.T) *story {
	require.NoError(t, world.start())
	s := &story{TB: t, ns: fmt.Sprintf("story-%d", told.Add(1)), begun: time.Now()}
	s.Logf("the namespace is %s", s.ns)
	s.namespace(s.ns)
	t.Cleanup(func() { tellWhatIs(s) })
	return s
}

// namespace makes a namespace, which goes with the story; NAME may have NS in it.
func (s *story) namespace(name string) {
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.text(name)}}
	s.create(o)
	s.Cleanup(func() {
		_ = world.user.Do(s.afterwards(), olmcore.Delete{Target: olmcore.RefOf(o).Unversioned(), Cause: byUser})
	})
}

// text puts the namespace's name in for NS.
func (s *story) text(text string) string { return strings.ReplaceAll(text, "NS", s.ns) }

// image is the name of an image of this story alone.
func (s *story) image(name string) string { return "registry.example.com/" + s.ns + "/" + name }

// apiGroup is the API group of this story alone.
func (s *story) apiGroup() string { return s.ns + ".example.com" }

// crd is the CustomResourceDefinition of a kind in that group, as YAML.
func (s *story) crd(kind string) string {
	return strings.NewReplacer("KIND", kind, "SINGULAR", strings.ToLower(kind)).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: SINGULARs.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: KIND, listKind: KINDList, plural: SINGULARs, singular: SINGULAR}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`)
}

// objects reads YAML documents. What has a namespace and names none is in the story's.
func (s *story) objects(text string) (objects []olmcore.Object) {
	read, err := decode.Read("the story", strings.NewReader(s.text(text)))
	require.NoError(s, err)
	for _, o := range read {
		objects = append(objects, o.Object)
	}
	return objects
}

func decodeManifest[T olmcore.Object](s *story, text string) T {
	objects := s.objects(text)
	require.Len(s, objects, 1)
	return objects[0].(T)
}

// given creates the objects of YAML documents, in their order. What is outside of the namespace goes with the story.
func (s *story) given(text string) {
	for _, o := range s.objects(text) {
		gvk := olmcore.GVKOf(o)
		mapping, err := world.user.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil { // its definition is new
			s.until(gvk.Kind+" is served", func() bool {
				meta.MaybeResetRESTMapper(world.user.Mapper)
				mapping, err = world.user.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
				return err == nil
			})
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
			o.SetNamespace(s.ns)
		}
		s.create(o)
		if o.GetNamespace() != s.ns {
			s.Cleanup(func() {
				_ = world.user.Do(s.afterwards(), olmcore.Delete{Target: olmcore.RefOf(o).Unversioned(), Cause: byUser})
			})
		}
	}
}

func (s *story) create(o olmcore.Object) {
	o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o))
	require.NoError(s, world.user.Do(s.Context(), olmcore.CreateOf(o, byUser)), olmcore.KeyOf(o))
}

// group makes an OperatorGroup; without targets it is for all namespaces, with none named for its own.
func (s *story) group() {
	s.given(`
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group}
spec: {targetNamespaces: [NS]}
`)
}

// catalog makes a CatalogSource at an address, where these packages are served.
func (s *story) catalog(name string, packages ...*pack) {
	s.serve(name, packages...)
	s.given(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: ` + name + `}
spec: {sourceType: grpc, address: "` + name + `.NS.svc:50051"}
`)
}

// serve replaces what a CatalogSource of the story's namespace serves, without a change that a manager sees.
func (s *story) serve(name string, packages ...*pack) { serveIn(s, s.ns, name, packages...) }

// serveIn replaces what a CatalogSource of another namespace serves.
func serveIn(s *story, namespace, name string, packages ...*pack) {
	contents.publish(types.NamespacedName{Namespace: namespace, Name: name}, built(s, name, packages...))
}

// push makes an image hold a catalog from now on: containers that run already have what they had.
func (s *story) push(image, digest string, packages ...*pack) {
	id := s.image(image) + "@sha256:" + digest
	contents.push(id, built(s, image, packages...))
	s.imageIs(image, controlplane.Image{ID: id})
}

func built(s *story, name string, packages ...*pack) *resolution.Catalog {
	var all []resolution.Package
	for _, p := range packages {
		all = append(all, p.build(s))
	}
	catalog, problems := resolution.Build(all)
	for _, d := range problems {
		s.Logf("catalog %s: %s: %s", name, d.Reason, d.Message)
	}
	return catalog
}

// publish replaces what a CatalogSource of the story's namespace serves.
func (s *story) publish(name string, packages ...*pack) {
	s.serve(name, packages...)
	s.touch(name)
}

// touch makes the manager look at a CatalogSource.
func (s *story) touch(name string) {
	edit(s, name, func(c *v1alpha1.CatalogSource) { c.Spec.DisplayName += "." })
}

// subscribe makes a Subscription to a package of the catalog "community": its default channel, approved automatically,
// unless changes say otherwise. Its name is that of the package.
func (s *story) subscribe(name string, changes ...func(spec *v1alpha1.SubscriptionSpec)) {
	o := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Spec: &v1alpha1.SubscriptionSpec{
		Package: name, CatalogSource: "community", CatalogSourceNamespace: s.ns, InstallPlanApproval: v1alpha1.ApprovalAutomatic,
	}}
	for _, change := range changes {
		change(o.Spec)
	}
	s.create(o)
}

// Changes of a Subscription.
func channel(name string) func(*v1alpha1.SubscriptionSpec) {
	return func(spec *v1alpha1.SubscriptionSpec) { spec.Channel = name }
}

func startingAt(csv string) func(*v1alpha1.SubscriptionSpec) {
	return func(spec *v1alpha1.SubscriptionSpec) { spec.StartingCSV = csv }
}

func manual(spec *v1alpha1.SubscriptionSpec) { spec.InstallPlanApproval = v1alpha1.ApprovalManual }

// get returns an object of the story's namespace as it was last seen; an empty one when there is none.
func get[T olmcore.Object](s *story, name string) T { return getIn[T](s, s.ns, name) }

// getIn returns an object of another namespace, or of none.
func getIn[T olmcore.Object](s *story, namespace, name string) T {
	o, err := olmcore.Get[T](s.Context(), world.watched, s.text(namespace), s.text(name))
	require.NoError(s, err)
	if olmcore.KeyOf(o) == (olmcore.Key{}) {
		return empty[T]()
	}
	return o
}

// exists says whether an object of the story's namespace is there.
func exists[T olmcore.Object](s *story, name string) bool { return get[T](s, name).GetName() != "" }

// list returns the objects of the story's namespace.
func list[T olmcore.Object](s *story) []T { return listIn[T](s, s.ns) }

func listIn[T olmcore.Object](s *story, namespace string) []T {
	all, err := olmcore.List[T](s.Context(), world.watched, s.text(namespace), nil)
	require.NoError(s, err)
	return all
}

// edit changes an object of the story's namespace, again when another was faster.
func edit[T olmcore.Object](s *story, name string, change func(o T)) { editIn(s, s.ns, name, change) }

func editIn[T olmcore.Object](s *story, namespace, name string, change func(o T)) {
	for range 50 {
		before, err := olmcore.Require[T](s.Context(), world.user, s.text(namespace), s.text(name))
		require.NoError(s, err)
		after := before.DeepCopyObject().(T)
		change(after)
		if err = world.user.Do(s.Context(), olmcore.UpdateOf(before, after, byUser)); !apierrors.IsConflict(err) {
			require.NoError(s, err)
			return
		}
	}
	require.FailNow(s, "the object changes all the time", name)
}

// remove deletes an object of the story's namespace.
func remove[T olmcore.Object](s *story, name string) { removeIn[T](s, s.ns, name) }

func removeIn[T olmcore.Object](s *story, namespace, name string) {
	o, err := olmcore.Require[T](s.Context(), world.user, s.text(namespace), s.text(name))
	require.NoError(s, err)
	require.NoError(s, world.user.Do(s.Context(), olmcore.Delete{Target: olmcore.RefOf(o).Unversioned(), Cause: byUser}))
}

// until waits until a condition holds.
func (s *story) until(what string, condition func() bool) {
	s.Helper()
	eventually(s, what, condition, true)
}

// eventually waits until what is read is what is wanted, in which NS stands for the namespace.
func eventually[T any](s *story, what string, read func() T, want T) {
	s.Helper()
	if text, ok := any(want).(string); ok {
		want = any(s.text(text)).(T)
	}
	if texts, ok := any(want).([]string); ok {
		want = any(mapped(texts, s.text)).(T)
	}
	diff, pause := "", 10*time.Millisecond
	for deadline := time.Now().Add(*patience); time.Now().Before(deadline); time.Sleep(pause) {
		pause = min(pause*5/4, 200*time.Millisecond)
		if diff = cmp.Diff(want, read()); diff == "" {
			s.Logf("%6.1fs  %s", time.Since(s.begun).Seconds(), what)
			return
		}
	}
	require.FailNow(s, "it does not come to this: "+what, "wanted (-), and what is (+):\n%s", diff)
}

func mapped(texts []string, f func(string) string) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = f(out[i])
	}
	return out
}

// quiet is how long the manager does nothing in a namespace that is at rest; what it tries again comes sooner.
const quiet = 1500 * time.Millisecond

// atRest waits until the manager has nothing to do in the story's namespace.
func (s *story) atRest() {
	s.Helper()
	s.until("the manager is at rest", func() bool {
		_, last := world.of(s.ns)
		return time.Since(last) > quiet
	})
}

// imageIs says how containers of an image behave from now on.
func (s *story) imageIs(name string, image controlplane.Image) {
	world.nodes.SetImage(s.image(name), image)
}
