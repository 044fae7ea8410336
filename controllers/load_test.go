// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/subscription/resolution"
)

const etcd = `{"schema":"olm.package","name":"etcd","defaultChannel":"stable"}
{"schema":"olm.channel","package":"etcd","name":"stable","entries":[{"name":"etcd.v1"}]}
{"schema":"olm.bundle","package":"etcd","name":"etcd.v1","image":"example.com/etcd:1","properties":[{"type":"olm.package","value":{"packageName":"etcd","version":"1.0.0"}}]}
`

func TestCatalogsAreFlags(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(path("catalog.json"), []byte(etcd), 0o600))
	require.NoError(t, os.Mkdir(path("folder"), 0o700))
	require.NoError(t, os.WriteFile(path("folder/etcd.json"), []byte(etcd), 0o600))
	f, err := os.Create(path("catalog.json.gz"))
	require.NoError(t, err)
	zip := gzip.NewWriter(f)
	_, err = zip.Write([]byte(etcd))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.NoError(t, f.Close())

	var c controllers.Catalogs
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.Var(&c, "catalog", "")
	require.NoError(t, flags.Parse([]string{
		"-catalog", "olm/file=" + path("catalog.json"), "-catalog", "other/zipped=" + path("catalog.json.gz"), "-catalog", "olm/folder=" + path("folder"),
	}))
	require.Equal(t, "olm", c.GlobalNamespace)
	require.Len(t, c.Content, 3)
	for key, content := range c.Content {
		require.Equal(t, []string{"stable"}, content.Channels("etcd"), key.String())
	}

	loaded, err := c.Load("olm/again=" + path("catalog.json"))
	require.NoError(t, err)
	require.Equal(t, types.NamespacedName{Namespace: "olm", Name: "again"}, loaded.CatalogSource)
	require.Len(t, loaded.Packages, 1)
	require.Empty(t, loaded.Problems)

	require.NoError(t, os.WriteFile(path("broken.json"), []byte(etcd+`{"schema":"olm.channel","package":"etcd","name":"edge","entries":[{"name":"etcd.v9"}]}`), 0o600))
	loaded, err = c.Load("olm/broken=" + path("broken.json"))
	require.NoError(t, err)
	require.NotEmpty(t, loaded.Problems, "a channel without its bundle")

	for _, value := range []string{"", "olm/x", "x=" + path("catalog.json"), "/x=" + path("catalog.json"), "olm/=" + path("catalog.json"), "olm/x="} {
		require.EqualError(t, c.Set(value), `"`+value+`" is not NAMESPACE/NAME=PATH`)
	}
	require.ErrorIs(t, c.Set("olm/x="+path("nowhere")), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path("no.json"), []byte("{"), 0o600))
	loaded, err = c.Load("olm/no=" + path("no.json"))
	require.NoError(t, err)
	require.Len(t, loaded.Problems, 1, "what is cut off is left out, and said")
}

func TestCatalogsServe(t *testing.T) {
	var c controllers.Catalogs
	var o controllers.Options
	c.Serve(&o)
	require.Nil(t, o.Resolve, "there is nothing to resolve from")
	c.Content, c.GlobalNamespace = map[types.NamespacedName]*resolution.Catalog{}, "first"
	c.Serve(&o)
	require.NotNil(t, o.Resolve)
	require.NotNil(t, o.Fingerprint)
	require.NotNil(t, o.CatalogsOf)
	require.Equal(t, "first", o.GlobalNamespace)
	o.GlobalNamespace = "chosen"
	c.Serve(&o)
	require.Equal(t, "chosen", c.GlobalNamespace)
}
