// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves a fake.Cluster over HTTP, in as much of the Kubernetes API as client-go and
// controller-runtime need: discovery, get, list, watch, create, update, merge patch, delete and the status subresource,
// in JSON, and answers SelfSubjectAccessReviews. It is for tests of adapters and of programs that embed the library, in
// other repositories too: no authentication, no field selectors, no server-side apply.
package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Server is an http.Handler over a cluster. Its clock follows the real one.
type Server struct {
	// Stored, when set before the first request, changes what is answered of an object, as if it had been stored so:
	// content that the fake refuses and an API server does not.
	Stored func(object map[string]any)
	// Allowed, when set before the first request, answers SelfSubjectAccessReviews; nil: everything is allowed.
	Allowed func(what authorizationv1.ResourceAttributes) bool
	// Authorize, when set before the first request, is asked of each request for objects; what it refuses is forbidden.
	Authorize func(what authorizationv1.ResourceAttributes) bool

	mu      sync.Mutex
	cluster *fake.Cluster
	// The cluster showed since at the real time started.
	started, since time.Time
	log            eventLog
	asked          map[string]int
	broken         bool
}

// New serves a cluster, which must be used through With alone from now on.
func New(c *fake.Cluster) *Server {
	return &Server{cluster: c, started: time.Now(), since: c.Now(), asked: map[string]int{}, log: eventLog{
		known: map[olmcore.Key]olmcore.Object{}, grown: make(chan struct{}),
	}}
}

// With gives exclusive use of the cluster. What it does is what watches see.
func (s *Server) With(use func(*fake.Cluster) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if behind := time.Since(s.started) - s.cluster.Now().Sub(s.since); behind > 0 {
		s.cluster.Advance(behind)
	}
	defer func() { s.log.take(s.cluster) }()
	return use(s.cluster)
}

// Live lets the simulation go on until the context ends.
func (s *Server) Live(ctx context.Context) error {
	for ctx.Err() == nil {
		for again := true; again; {
			if err := s.With(func(c *fake.Cluster) error { again = c.Step(); return nil }); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// Requests returns how often each verb was asked for since the last call; of watches, how often one began.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = map[string]int{}
	return asked
}

// Break makes every request fail, or work again.
func (s *Server) Break(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// request is one request for objects of a kind.
type request struct {
	*http.Request
	gvk             schema.GroupVersionKind
	kind            fake.ServedKind
	namespace, name string
	subresource     string
	selector        labels.Selector
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var answer any
	err := s.With(func(c *fake.Cluster) error {
		if s.broken {
			return apierrors.NewServiceUnavailable("the server is broken")
		}
		var err error
		answer, err = s.answer(r, path)
		return err
	})
	if watch, ok := answer.(*watcher); ok && err == nil {
		watch.run(w)
		return
	}
	status := http.StatusOK
	if err != nil {
		answer, status = statusOf(err)
	} else if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone hears nothing
}

func statusOf(err error) (any, int) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status, int(status.Code)
}

func (s *Server) answer(r *http.Request, path []string) (any, error) {
	if found, ok := s.discovery(path); ok {
		s.asked["discovery"]++
		return found, nil
	}
	if r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && r.Method == http.MethodPost {
		s.asked["review"]++
		return s.review(r.Body)
	}
	q, err := s.parse(r, path)
	if err != nil {
		return nil, err
	}
	verb := q.verb()
	s.asked[verb]++
	if s.Authorize != nil && !s.Authorize(q.attributes()) {
		resource := schema.GroupResource{Group: q.gvk.Group, Resource: q.kind.Resource}
		return nil, apierrors.NewForbidden(resource, q.name, errors.New("no rule allows it"))
	}
	switch verb {
	case "get":
		o, err := s.cluster.Get(r.Context(), q.gvk, q.namespace, q.name)
		if err != nil {
			return nil, err
		}
		return s.encode(o)
	case "list":
		return s.list(q)
	case "watch":
		return s.watch(q)
	}
	return s.write(q)
}

// encode returns an object as it is answered.
func (s *Server) encode(o olmcore.Object) (map[string]any, error) {
	m, err := olmcore.ToMap(o)
	if err == nil && s.Stored != nil {
		s.Stored(m)
	}
	return m, err
}

// attributes are what RBAC looks at.
func (q *request) attributes() authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: q.verb(), Group: q.gvk.Group, Version: q.gvk.Version, Resource: q.kind.Resource, Subresource: q.subresource,
		Namespace: q.namespace, Name: q.name,
	}
}

func (q *request) verb() string {
	switch q.Method {
	case http.MethodGet:
		switch watching := q.URL.Query().Get("watch"); {
		case watching == "1" || watching == "true":
			return "watch"
		case q.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return strings.ToLower(q.Method)
}

// parse reads /api/v1/... and /apis/GROUP/VERSION/... .
func (s *Server) parse(r *http.Request, path []string) (*request, error) {
	q := &request{Request: r}
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "404 page not found", 0, true)
	var gv schema.GroupVersion
	switch {
	case len(path) > 2 && path[0] == "api":
		gv, path = schema.GroupVersion{Version: path[1]}, path[2:]
	case len(path) > 3 && path[0] == "apis":
		gv, path = schema.GroupVersion{Group: path[1], Version: path[2]}, path[3:]
	default:
		return nil, unknown
	}
	if len(path) > 2 && path[0] == "namespaces" && path[2] != "status" && path[2] != "finalize" {
		q.namespace, path = path[1], path[2:]
	}
	kinds := s.cluster.Discovery().Kinds()
	i := slices.IndexFunc(kinds, func(k fake.ServedKind) bool { return k.GroupVersion() == gv && k.Resource == path[0] })
	if i < 0 {
		return nil, unknown
	}
	q.kind, q.gvk = kinds[i], kinds[i].GroupVersionKind
	if len(path) > 1 {
		q.name = path[1]
	}
	if len(path) > 2 {
		q.subresource = path[2]
	}
	var err error
	if q.selector, err = labels.Parse(r.URL.Query().Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if fields := r.URL.Query().Get("fieldSelector"); fields != "" {
		return nil, apierrors.NewBadRequest("field selectors are not served")
	}
	return q, nil
}

func (s *Server) list(q *request) (any, error) {
	objects, err := s.cluster.List(q.Context(), q.gvk, q.namespace, q.selector)
	if err != nil {
		return nil, err
	}
	objects, metadata, err := q.page(objects)
	if err != nil {
		return nil, err
	}
	metadata["resourceVersion"] = s.cluster.ResourceVersion()
	items := make([]any, len(objects))
	for i, o := range objects {
		if items[i], err = s.encode(o); err != nil {
			return nil, err
		}
	}
	apiVersion, kind := q.gvk.ToAPIVersionAndKind()
	return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "items": items, "metadata": metadata}, nil
}

// page returns the objects of a list that are on the page that is asked for, and the metadata which say where the next
// one begins: after the last name of this one, as the cluster is then. What a watch cache answers has no pages.
func (q *request) page(objects []olmcore.Object) ([]olmcore.Object, map[string]any, error) {
	metadata, query := map[string]any{}, q.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(query.Get("limit"), "0"))
	if err != nil || limit < 0 {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("limit: %q is no number of objects", query.Get("limit")))
	}
	place := func(o olmcore.Object) string { return o.GetNamespace() + "/" + o.GetName() }
	after := query.Get("continue")
	if limit == 0 && after == "" || query.Get("resourceVersion") == "0" {
		return objects, metadata, nil
	}
	objects = slices.SortedFunc(slices.Values(objects), func(a, b olmcore.Object) int { return strings.Compare(place(a), place(b)) })
	objects = slices.DeleteFunc(objects, func(o olmcore.Object) bool { return after != "" && place(o) <= after })
	if rest := len(objects) - limit; limit > 0 && rest > 0 {
		objects = objects[:limit]
		metadata["continue"], metadata["remainingItemCount"] = place(objects[limit-1]), rest
	}
	return objects, metadata, nil
}

// write runs a request as the action that it asks for and answers with the object as it is then.
func (s *Server) write(q *request) (any, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	if len(body) > 0 && !strings.Contains(q.Header.Get("Content-Type"), "json") {
		return nil, unsupported(q)
	}
	name := q.name
	if q.Method == http.MethodPut {
		err = s.replace(q, body)
	} else {
		name, err = s.act(q, body)
	}
	if err != nil {
		return nil, err
	}
	o, err := s.cluster.Get(q.Context(), q.gvk, q.namespace, name)
	if apierrors.IsNotFound(err) {
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
	}
	if err != nil {
		return nil, err
	}
	return s.encode(o)
}

func unsupported(q *request) error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, q.Method, schema.GroupResource{}, q.name, q.Header.Get("Content-Type"), 0, true)
}

// replace does what a PUT asks for.
func (s *Server) replace(q *request, body []byte) error {
	o, err := decodeBody(q, body)
	if err != nil {
		return err
	}
	if q.subresource == "status" {
		return s.cluster.UpdateStatus(o)
	}
	return s.cluster.Update(o)
}

// act runs the action that any other write asks for.
func (s *Server) act(q *request, body []byte) (name string, err error) {
	action, err := s.action(q, body)
	if err != nil {
		return "", err
	}
	_, target, _ := action.Describe()
	return target.Name, s.cluster.Do(q.Context(), action)
}

func (s *Server) action(q *request, body []byte) (olmcore.Action, error) {
	apiVersion, kind := q.gvk.ToAPIVersionAndKind()
	target := olmcore.Ref{APIVersion: apiVersion, Kind: kind, Namespace: q.namespace, Name: q.name}
	as := identity(q.Header.Get("Impersonate-User"))
	switch q.Method {
	case http.MethodPost:
		o, err := decodeBody(q, body)
		if err != nil {
			return nil, err
		}
		target.Name = o.GetName()
		return olmcore.Create{Target: target, Object: o, As: as}, nil
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &options); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		if p := options.Preconditions; p != nil {
			target = conditional(target, p.UID, p.ResourceVersion)
		}
		a := olmcore.Delete{Target: target, GracePeriodSeconds: options.GracePeriodSeconds, As: as}
		if options.PropagationPolicy != nil {
			a.PropagationPolicy = *options.PropagationPolicy
		}
		return a, nil
	}
	current, err := s.cluster.Get(q.Context(), q.gvk, q.namespace, q.name)
	if err != nil {
		return nil, err
	}
	if q.Method != http.MethodPatch || q.Header.Get("Content-Type") != string(types.MergePatchType) {
		return nil, unsupported(q)
	}
	return patching(q, target, as, current, body)
}

// patching returns the update that a merge patch asks for: of the status alone, or of all but the status.
func patching(q *request, target olmcore.Ref, as *corev1.ObjectReference, current olmcore.Object, body []byte) (olmcore.Action, error) {
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var conditions struct {
		Metadata struct {
			UID             *types.UID `json:"uid"`
			ResourceVersion *string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &conditions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	record := olmcore.Record{Verb: olmcore.VerbUpdate, As: as,
		Target: conditional(target, conditions.Metadata.UID, conditions.Metadata.ResourceVersion)}
	status := patch["status"]
	switch {
	case q.subresource == "status":
		record.Verb, patch = olmcore.VerbUpdateStatus, map[string]any{}
		if status != nil {
			patch["status"] = status
		}
	case q.kind.Status:
		delete(patch, "status")
	}
	if metadata, ok := patch["metadata"].(map[string]any); ok {
		delete(metadata, "uid")
		delete(metadata, "resourceVersion")
	}
	var err error
	if record.Patch, err = json.Marshal(patch); err != nil {
		return nil, err
	}
	return decode.Action(record, current)
}

func decodeBody(q *request, body []byte) (olmcore.Object, error) {
	o, err := decode.Decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if got := olmcore.GVKOf(o); got != q.gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is a %s, not a %s", got, q.gvk))
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(q.namespace)
	}
	return o, nil
}

func conditional(target olmcore.Ref, uid *types.UID, resourceVersion *string) olmcore.Ref {
	if uid != nil {
		target.UID = *uid
	}
	if resourceVersion != nil {
		target.ResourceVersion = *resourceVersion
	}
	return target
}

// identity is the ServiceAccount that a client writes as; nil for the controller.
func identity(user string) *corev1.ObjectReference {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, named := strings.Cut(account, ":")
	if !ok || !named {
		return nil
	}
	return &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}
