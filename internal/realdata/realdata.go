// SPDX-License-Identifier: Apache-2.0

// Package realdata finds the published operators that tests run against. They are not part of this repository: they are
// looked for in the folder that OLMCORE_DATA names or, without it, in olm-data or shared/data beside the module, and
// tests that need them are skipped where there are none.
package realdata

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Dir returns the data folder, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	folders := foldersFor(moduleRoot(t), os.Getenv("OLMCORE_DATA"))
	for _, dir := range folders {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	t.Skipf("no published operators in %s: OLMCORE_DATA names their folder", strings.Join(folders, " or "))
	return ""
}

// foldersFor returns where the data may be, the first that exists counts.
func foldersFor(root, named string) []string {
	if named != "" {
		return []string{named}
	}
	return []string{filepath.Join(root, "..", "olm-data"), filepath.Join(root, "..", "shared", "data")}
}

// Bundle is one published version of an operator.
type Bundle struct {
	// Operator and Version are the names of its folders.
	Operator, Version string
	// Objects are its manifests, in file order.
	Objects []olmcore.Object
}

// Bundles returns every published bundle, sorted by operator and version, or skips the test. Each has one
// ClusterServiceVersion, and is the caller's own copy: the files are read once.
func Bundles(t testing.TB) []Bundle {
	t.Helper()
	Dir(t)
	readOnce.Do(func() { read = readBundles(t, "*/*", "") })
	bundles := slices.Clone(read)
	for i := range bundles {
		bundles[i].Objects = slices.Clone(bundles[i].Objects)
		for j, o := range bundles[i].Objects {
			bundles[i].Objects[j] = o.DeepCopyObject().(olmcore.Object)
		}
	}
	return bundles
}

// shapes are the versions that Sample returns: webhooks of each kind, dependencies, many definitions, definitions alone
// and none, the largest ClusterServiceVersion, keys in a case of their own, an old one.
var shapes = []string{"cert-manager/1.16.5", "etcd/0.9.4", "infinispan/2.5.13", "kuadrant-operator/0.11.1",
	"rabbitmq-messaging-topology-operator/1.19.2", "stackgres-community/1.18.8", "strimzi-kafka-operator/1.2.0"}

// Sample returns a published bundle of each shape, sorted, or skips the test. With OLMCORE_BUNDLES=all it is Bundles:
// for tests that say of a bundle what another one says of all.
func Sample(t testing.TB) []Bundle {
	t.Helper()
	if os.Getenv("OLMCORE_BUNDLES") == "all" {
		return Bundles(t)
	}
	var bundles []Bundle
	for _, version := range shapes {
		bundles = append(bundles, readBundles(t, version, "")...)
	}
	return bundles
}

// Some returns the published bundles of some operators, sorted, or skips the test. With OLMCORE_BUNDLES=all it is
// Bundles.
func Some(t testing.TB, operators ...string) []Bundle {
	t.Helper()
	if os.Getenv("OLMCORE_BUNDLES") == "all" {
		return Bundles(t)
	}
	var bundles []Bundle
	for _, operator := range operators {
		bundles = append(bundles, readBundles(t, operator+"/*", "")...)
	}
	return bundles
}

// ClusterServiceVersions returns every published bundle without its other objects, or
// skips the test. The definitions, most of what is published, are not read for it.
func ClusterServiceVersions(t testing.TB) []Bundle {
	t.Helper()
	bundles := readBundles(t, "*/*", "kind: "+v1alpha1.ClusterServiceVersionKind)
	for i := range bundles {
		bundles[i].Objects = []olmcore.Object{bundles[i].csv()}
	}
	return bundles
}

var (
	readOnce sync.Once
	read     []Bundle
)

// readBundles reads the files of bundles that hold a text; version is a pattern of their folders.
func readBundles(t testing.TB, version, text string) []Bundle {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(Dir(t), "bundles", version, "manifests"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles %s: %v", version, err)
	}
	var bundles []Bundle
	for _, dir := range dirs {
		version := filepath.Dir(dir)
		b := Bundle{Operator: filepath.Base(filepath.Dir(version)), Version: filepath.Base(version)}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(text)) {
				b.Objects = append(b.Objects, objectsIn(t, file, content)...)
			}
		}
		if b.csv() == nil {
			t.Fatalf("%s %s has not one ClusterServiceVersion", b.Operator, b.Version)
		}
		bundles = append(bundles, b)
	}
	return bundles
}

// csv returns the ClusterServiceVersion of a bundle, nil unless there is one.
func (b Bundle) csv() (found *v1alpha1.ClusterServiceVersion) {
	for _, o := range b.Objects {
		if csv, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
			if found != nil {
				return nil
			}
			found = csv
		}
	}
	return found
}

// Objects reads the YAML or JSON documents of one file.
func Objects(t testing.TB, file string) []olmcore.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return objectsIn(t, file, content)
}

func objectsIn(t testing.TB, file string, content []byte) []olmcore.Object {
	t.Helper()
	read, err := decode.Read(file, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	objects := make([]olmcore.Object, len(read))
	for i, o := range read {
		objects[i] = o.Object
	}
	return objects
}

// moduleRoot returns the folder of the outermost module, which those that are nested in it have in common.
func moduleRoot(t testing.TB) (root string) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	if root == "" {
		t.Fatal("no go.mod above the working directory")
	}
	return root
}
